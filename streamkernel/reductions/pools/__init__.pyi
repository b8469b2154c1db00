from .cell_lots import cells_of_copies as cells_of_copies
from .cell_sample import CellRows as CellRows
from .cell_sample import CellSample as CellSample
from .cross_pool import CrossPool as CrossPool
from .cross_pool import CrossSums as CrossSums
from .dictionary import DictionarySums as DictionarySums
from .dictionary import Roots as Roots
from .dictionary_columns import DictionaryColumns as DictionaryColumns
from .dictionary_rows import HeldOut as HeldOut
from .dictionary_rows import ResidualReservoir as ResidualReservoir
from .distinct_rows import CountRepeats as CountRepeats
from .distinct_rows import Origins as Origins
from .distinct_rows import Repeats as Repeats
from .inner_products import Gram as Gram
from .near_copies import Lots as Lots
from .near_copies import LotSizes as LotSizes
from .pool import (
    PoolColumns as PoolColumns,
)
from .pool import (
    PoolGram as PoolGram,
)
from .pool import (
    PoolSums as PoolSums,
)
from .pool import (
    ResidualColumns as ResidualColumns,
)
from .pool_blocks import PoolBlocks as PoolBlocks
from .pool_root import PoolRoot as PoolRoot
from .pool_root import RootSums as RootSums
from .residual_sample import ResidualSample as ResidualSample
from .residual_sample import ResidualSampleResult as ResidualSampleResult
