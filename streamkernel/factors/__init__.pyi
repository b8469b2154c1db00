from ._scaler_record import scaler_of as scaler_of
from .cca import FactorCCA as FactorCCA
from .codes import Codes as Codes
from .eigen import FactorEigen as FactorEigen
from .factor import BASIS as BASIS
from .factor import ROWS as ROWS
from .factor import Factor as Factor
from .factor import checked_folder as checked_folder
from .features import FeatureRows as FeatureRows
from .lazy import lazy_product as lazy_product
from .lazy import lazy_solve as lazy_solve
from .neighbours import NearestRows as NearestRows
from .neighbours import Neighbours as Neighbours
from .neighbours import nearest_neighbours as nearest_neighbours
from .operators import (
    KernelOperator as KernelOperator,
)
from .operators import (
    WoodburyInverse as WoodburyInverse,
)
from .operators import (
    kernel_operator as kernel_operator,
)
from .operators import (
    preconditioner as preconditioner,
)
from .pca import PCA_ROWS as PCA_ROWS
from .pca import pca_residual_traces as pca_residual_traces
from .saved_basis import SavedBasis as SavedBasis
from .woodbury import NystroemRegression as NystroemRegression
from .woodbury import nystroem_regression as nystroem_regression
