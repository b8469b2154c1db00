"""Methods that leave an estimator as it was where they fail."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from streamkernel.type_aliases import Unchecked, Untyped

Method = TypeVar("Method", bound=Callable[..., Any])


def kept_if_it_fails(method: Method) -> Method:
    """A method that gives its estimator the attributes back that it had, where it raises.

    scikit-learn's check of the rows sets ``n_features_in_`` and ``feature_names_in_`` before a fit begins. Beside the
    model of an earlier fit, they would be those of other rows.
    """

    @wraps(method)
    def kept(self: Untyped, /, *args: Unchecked, **options: Unchecked) -> Any:
        before = dict(self.__dict__)
        try:
            return method(self, *args, **options)
        except BaseException:  # also where the user interrupts it
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return cast(Method, kept)
