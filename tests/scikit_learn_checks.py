"""scikit-learn's checks of estimators, as parameters of a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

__all__ = ["with_checks"]

# What a class writes itself. All other checks are about `SupervisedEstimator`, `BasisTransformer` and the reading of
# rows, which one class of each sort shows.
_OF_EACH_CLASS = {
    "check_class_weight_classifiers",
    "check_classifiers_classes",
    "check_classifiers_multilabel_output_format_decision_function",
    "check_classifiers_multilabel_output_format_predict",
    "check_classifiers_multilabel_output_format_predict_proba",
    "check_classifiers_multilabel_representation_invariance",
    "check_classifiers_train",
    "check_decision_proba_consistency",
    "check_dict_unchanged",
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_dont_overwrite_parameters",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_estimators_unfitted",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_fit_idempotent",
    "check_get_params_invariance",
    "check_methods_subset_invariance",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_positive_only_tag_during_fit",
    "check_regressor_multioutput",
    "check_regressors_no_decision_function",
    "check_transformer_general",
    "check_valid_tag_types",
}


# A default basis has some of the rows, drawn by number, and other ones where rows are repeated. `test_row_weights` and
# `test_sparse` have these checks, with all rows as functions.
_OF_ALL_ROWS = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")


def _cases(whole: Sequence[Any], others: Sequence[Any]) -> Iterator[Any]:
    shown: set[str] = set()  # by the first ones before this one
    tried: set[tuple[str, str]] = set()
    for number, each in enumerate((*whole, *others)):
        own = set()
        for estimator, check in estimator_checks_generator(each):
            name = getattr(check, "func", check).__name__
            if name in _OF_ALL_ROWS:
                continue
            case = (type(each).__name__, name)
            # A check in several forms is about rows of other dtypes, and in memory that is only read.
            of_class = name in _OF_EACH_CLASS and case not in tried
            quick = of_class or (number < len(whole) and name not in shown)
            own.add(name)
            tried.add(case)
            yield pytest.param(estimator, check, marks=() if quick else (pytest.mark.slow,), id="-".join(case))
        shown |= own


def with_checks(*whole: Any, others: Sequence[Any] = ()) -> pytest.MarkDecorator:
    """``estimator`` and ``check``: every check of the first ones, those of their own code of each class, the rest slow.

    A check of the reading of rows is quick for one of the first ones, and so are all of its forms.
    """
    return pytest.mark.parametrize(("estimator", "check"), list(_cases(whole, others)))
