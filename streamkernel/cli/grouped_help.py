"""Help in sections, and help about one estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

MACHINE, OUTPUT = "Machine", "Output"  # titles of the last sections
_CHOSEN = "streamkernel.estimator"


class SectionOption(click.Option):
    """An option of a section of the help.

    Attributes
    ----------
    section : title of the section.
    by_estimator : line of help for each estimator that has the option; empty where they all have it, with one line.
    """

    def __init__(
        self, *declarations: Any, section: str, by_estimator: Mapping[str, str] | None = None, **attributes: Any
    ) -> None:
        super().__init__(*declarations, **attributes)
        self.section = section
        self.by_estimator = by_estimator or {}

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record, chosen = super().get_help_record(ctx), ctx.meta.get(_CHOSEN)
        if record is None or not self.by_estimator or chosen is None:
            return record
        return (record[0], self.by_estimator[chosen]) if chosen in self.by_estimator else None


def section_option(section: str, *declarations: str, **attributes: Any) -> Callable[[F], F]:
    """The decorator `click.option` for an option of a section."""
    return click.option(*declarations, cls=SectionOption, section=section, **attributes)


class GroupedCommand(click.Command):
    """A command whose help has sections; with `--estimator NAME` it lists only the options of that estimator.

    Parameters
    ----------
    sections : titles of the first sections, in their order.
    """

    def __init__(self, name: str, *, sections: Sequence[str] = (), **attributes: Any) -> None:
        super().__init__(name, **attributes)
        self.sections = sections

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # `--help` ends the parsing, before `--estimator` is read where that comes later.
        for each in self.params:
            if each.name == "estimator" and isinstance(each.type, click.Choice):
                named = _value_of("--estimator", args)
                ctx.meta[_CHOSEN] = named if named in each.type.choices else None
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in self.sections}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx) if isinstance(each, click.Option) else None
            if record is not None:
                records.setdefault(getattr(each, "section", OUTPUT), []).append(record)
        for title in sorted(records, key=(MACHINE, OUTPUT).__contains__):
            if records[title]:
                with formatter.section(title):
                    formatter.write_dl(records[title])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # It is about the rules, which some estimators do not have.
        if all(each.get_help_record(ctx) for each in self.params if each.name == "rule"):
            super().format_epilog(ctx, formatter)


def _value_of(flag: str, args: list[str]) -> str | None:
    for word, following in zip(args, [*args[1:], None], strict=False):
        if word == flag:
            return following
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return None
