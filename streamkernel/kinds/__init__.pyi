from ._kind import Kind as Kind
from ._kind import Predictor as Predictor
from ._kind import Transformer as Transformer
from ._loaded import (
    kind_of_class as kind_of_class,
)
from ._loaded import (
    predicting_class as predicting_class,
)
from ._loaded import (
    predictor_of as predictor_of,
)
from ._loaded import (
    title_of as title_of,
)
from ._loaded import (
    transformer_class as transformer_class,
)
from ._loaded import (
    transforming_class as transforming_class,
)
from ._loaded import (
    updatable as updatable,
)
from ._options import (
    OPTION_SETTINGS as OPTION_SETTINGS,
)
from ._options import (
    check_options as check_options,
)
from ._options import (
    settings_of as settings_of,
)
from ._options import (
    with_stores_opened as with_stores_opened,
)
from ._registry import KINDS as KINDS
from ._registry import PREDICTORS as PREDICTORS
from ._registry import TRANSFORMERS as TRANSFORMERS
