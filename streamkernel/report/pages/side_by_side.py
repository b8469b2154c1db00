"""The page of several saved models of any kind: those of one table side by side, those of other tables apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from streamkernel.byte_counts import format_bytes
from streamkernel.errors import ParameterError
from streamkernel.kinds import KINDS
from streamkernel.models.predicting import PredictingModel
from streamkernel.models.saved import SavedModel
from streamkernel.report.facts.fit import Absent
from streamkernel.report.facts.standing import Standing, ranks, standing
from streamkernel.report.figures import plot
from streamkernel.report.figures.side_by_side import MEASURES, score_text, scores_figure
from streamkernel.report.pages.parts import Card, Page, Section, Table, listed
from streamkernel.report.text import capitalised, count, duration, kernel_of, percent, plain, plural
from streamkernel.type_aliases import AnyArray

_MOST_MODELS = 60
_MOST_CARDS = 8  # tables that have a card


@dataclass(frozen=True)
class _Model:
    """A model with its name on the page, its score, and what it is ranked with."""

    name: str
    model: SavedModel
    score: Standing | Absent
    place: tuple[int, int] | None = None


def models_page(models: Mapping[str, SavedModel]) -> Page:
    """The whole page.

    Raises
    ------
    ParameterError
        There are fewer than two models, or too many.
    """
    if not 2 <= len(models) <= _MOST_MODELS:
        raise ParameterError(f"a page is about 2 to {_MOST_MODELS} models, but there are {len(models)}; name as many")
    tables = _by_table(models)
    lead = f"{plural(len(models), 'model')} of {plural(len(tables), 'table')}, side by side."
    cards = [Card("Models", count(len(models)), "saved ones"), Card("Tables", count(len(tables)), _tables_text(tables))]
    for number, found in list(enumerate(tables, 1))[:_MOST_CARDS]:
        best = min((each for each in found if each.place and each.place[0] == 1), key=_loss, default=None)
        if best is not None and isinstance(best.score, Standing):
            of = f"of {best.place[1]} on the same rows" if best.place else ""
            label = "Best" if len(tables) == 1 else f"Best of table {number}"
            note = f"{plain(best.name, 40)}, {MEASURES[best.score.measure]}, {of}"
            cards.append(Card(label, score_text(best.score), note))
    sections = [section for number, found in enumerate(tables, 1) for section in _sections(number, found, len(tables))]
    return Page("Models side by side", lead, cards, _notices(tables), sections, [_fingerprints(tables)], None)


def _loss(each: _Model) -> float:
    return each.score.loss if isinstance(each.score, Standing) else float("inf")


def _by_table(models: Mapping[str, SavedModel]) -> list[list[_Model]]:
    """The models of each table, the best first among those that may be ranked; tables in the order of their models."""
    tables: dict[str, list[_Model]] = {}
    for name, model in models.items():
        score = standing(model) if isinstance(model, PredictingModel) else Absent("it does not predict")
        tables.setdefault(model.record.table_fingerprint, []).append(_Model(name, model, score))
    return [_ranked(found) for found in tables.values()]


def _ranked(found: list[_Model]) -> list[_Model]:
    places = ranks(found, lambda each: each.score)
    placed = [replace(each, place=places.get(index)) for index, each in enumerate(found)]
    groups = list(dict.fromkeys(each.score.rankable for each in placed if isinstance(each.score, Standing)))

    def order(each: _Model) -> tuple[int, float]:
        score = each.score
        return (groups.index(score.rankable), score.loss) if isinstance(score, Standing) else (len(groups), 0.0)

    return sorted(placed, key=order)


def _tables_text(tables: Sequence[Sequence[_Model]]) -> str:
    return "told apart by their fingerprints" if len(tables) > 1 else "all models are of it"


def _sections(number: int, found: Sequence[_Model], tables: int) -> list[Section]:
    """Numbers of the models of one table, and a figure for each set of the same held-out rows."""
    rows = sorted({each.model.record.rows.count for each in found})
    fitted = count(rows[0]) if len(rows) == 1 else f"{count(rows[0])} to {count(rows[-1])}"
    head = f"Table {number}: " if tables > 1 else ""
    table = Table(
        f"{plural(len(found), 'model')} fitted to {fitted} rows",
        tuple(map(_row, found)),
        ("Name", "Kind", "Score", "Rank", "Held-out rows", "Kernel", "Functions", "Residual trace", "Size", "Time"),
        wide=True,
    )
    sets: dict[object, list[tuple[str, Standing]]] = {}
    for each in found:
        if each.place is not None and isinstance(each.score, Standing):
            sets.setdefault(each.score.rankable, []).append((each.name, each.score))
    figures = [_named(scores_figure(each), f"scores-{number}-{at}") for at, each in enumerate(sets.values(), 1)]
    return [Section(f"{head}{_columns_text(found)}", figures, [table])]


def _named(drawing: plot.Drawing, name: str) -> plot.Drawing:
    """The figure with a name of its own: there may be several on the page."""
    return replace(drawing, name=name) if isinstance(drawing, plot.Figure) else drawing


def _columns_text(found: Sequence[_Model]) -> str:
    record = found[0].model.record
    return f"{plural(len(record.columns), 'column')}, {listed([plain(name, 24) for name in record.columns[:3]])}" + (
        ", …" if len(record.columns) > 3 else ""
    )


def _row(each: _Model) -> tuple[str, ...]:
    model, score = each.model, each.score
    record, run = model.record, model.record.run
    return (
        plain(each.name, 60),
        capitalised(KINDS[record.estimator].title if record.estimator in KINDS else plain(record.estimator)),
        f"{MEASURES[score.measure]} {score_text(score)}" if isinstance(score, Standing) else f"none: {score.reason}",
        _rank_text(each),
        count(score.rows) if isinstance(score, Standing) else "–",
        kernel_of(model),
        count(record.basis_size),
        percent(record.certificate.relative_residual_trace),
        format_bytes(_bytes(model.arrays)),
        duration(None if run is None else run.seconds),
    )


def _rank_text(each: _Model) -> str:
    if each.place is not None:
        return f"{each.place[0]} of {each.place[1]}"
    return "no other with its rows and measure" if isinstance(each.score, Standing) else "–"


def _bytes(arrays: Mapping[str, AnyArray]) -> int:
    return sum(values.nbytes for values in arrays.values())


def _notices(tables: Sequence[Sequence[_Model]]) -> list[str]:
    notices = []
    if len(tables) > 1:
        notices.append(
            "Models of different tables stand apart, and are not ranked against each other: their errors are on other "
            "rows. A table counts with the rows that a model was fitted to: other rows of it, or the same without "
            "their targets, are another."
        )
    if any(len({each.score.rankable for each in found if isinstance(each.score, Standing)}) > 1 for found in tables):
        notices.append(
            "Models of one table with other held-out rows, or another measure, are not ranked against each other."
        )
    if any(each.place for found in tables for each in found):
        notices.append(
            "The best of several scores is on average too good: on new rows expect less of the best, the more so the "
            "more were compared."
        )
    return notices


def _fingerprints(tables: Sequence[Sequence[_Model]]) -> Table:
    first = [found[0].model.record.table_fingerprint for found in tables]
    rows = [(f"Table {number}", plain(fingerprint, 64)) for number, fingerprint in enumerate(first, 1)]
    digests = [(plain(each.name, 60), each.model.digest) for found in tables for each in found]
    return Table("Fingerprints of the tables, digests of the models", (*rows, *digests))
