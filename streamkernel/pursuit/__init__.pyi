from ._pursuing import Pursued as Pursued
from ._pursuing import pursue as pursue
from .choices import (
    AUTO as AUTO,
)
from .choices import (
    DRAWS as DRAWS,
)
from .choices import (
    LOSSES as LOSSES,
)
from .choices import (
    POOLS as POOLS,
)
from .choices import (
    VARIANTS as VARIANTS,
)
from .choices import (
    share_of as share_of,
)
from .path import PursuitPath as PursuitPath
from .path import PursuitSelection as PursuitSelection
from .pools import Pools as Pools
from .rule import MatchingPursuit as MatchingPursuit
from .stages import Stages as Stages
