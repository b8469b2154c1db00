"""Messy columns: categories, gaps, dates, numbers with signs, ids, targets and weights."""

from __future__ import annotations

from messy.case import Case, both, text

JOB = "age,job,y\n30,baker,1\n40,smith,2\n50,baker,3\n"
MANY = "".join(f"{i},city {i % 40},{i % 7}\n" for i in range(200))
GAPS = "age,job,y\n30,baker,1\n,smith,2\n50,,3\n"
LATER = "ingest rows.csv rows.zarr --target y --schema auto && ingest later.csv rows.zarr --append"

COLUMNS = [
    Case(
        "text in a column",
        text(JOB),
        "ingest rows.csv rows.zarr --target y",
        "rows.csv:2:2: 'baker' in column 'job' is",
    ),
    Case(
        "text in a column, looked at",
        text(JOB),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "age, job=baker, job=smith",
    ),
    Case(
        "categories, named by an option",
        text(JOB),
        "ingest rows.csv rows.zarr --target y --categories job",
        "age, job=baker, job=smith",
    ),
    Case(
        "a category of 40 values",
        text("a,city,y\n" + MANY),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a, city (mean of y)",
    ),
    Case(
        "the same without a target",
        text("a,city,y\n" + MANY),
        "ingest rows.csv rows.zarr --drop y --schema auto",
        "a",
    ),
    Case(
        "a category that only later rows have",
        both(text(JOB), text("age,job,y\n20,pirate,1\n", "later.csv")),
        LATER,
        "age, job=baker, job=smith",
    ),
    Case(
        "the same, but refused by an option",
        both(text(JOB), text("age,job,y\n20,pirate,1\n", "later.csv")),
        LATER + " --unknown refuse",
        "later.csv:2: 'pirate' of column 'job' is none of its 2 categories",
    ),
    Case(
        "later rows with their columns in another order, and one more",
        both(text(JOB), text("y,more,job,age\n1,x,smith,20\n", "later.csv")),
        LATER,
        "age, job=baker, job=smith",
    ),
    Case(
        "later rows without a column",
        both(text(JOB), text("age,y\n20,1\n", "later.csv")),
        LATER,
        "later.csv has no column 'job', which the schema makes a feature",
    ),
    Case(
        "a missing number",
        text("a,y\n1,1\n,2\n"),
        "ingest rows.csv rows.zarr --target y",
        "fill missing values by --missing mean",
    ),
    Case(
        "a missing number, filled by the mean",
        text("a,y\n1,1\n,2\n"),
        "ingest rows.csv rows.zarr --target y --missing mean",
        "a",
    ),
    Case(
        "a missing number, filled by the median",
        text("a,y\n1,1\n,2\n"),
        "ingest rows.csv rows.zarr --target y --missing median",
        "a",
    ),
    Case(
        "missing values of all kinds, looked at",
        text(GAPS),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "age, age is missing, job=baker, job=smith, job is missing",
    ),
    Case("a missing target", text("a,y\n1,1\n2,\n"), "ingest rows.csv rows.zarr --target y", "y contains NaN"),
    Case(
        "missing values, refused by an option",
        text(GAPS),
        "ingest rows.csv rows.zarr --target y --schema auto --missing refuse",
        "rows.csv:3: column 'age' has no value",
    ),
    Case(
        '"?" for a missing number',
        text("a,y\n" + "".join(f"{'?' if i == 7 else i},{i}\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a, a is missing",
    ),
    Case(
        "dates of ISO 8601",
        text("when,y\n2020-01-01,1\n2020-06-01T12:00,2\n"),
        "ingest rows.csv rows.zarr --target y --dates when",
        "when (elapsed), when (sine of the week), when (cosine of the week), when (sine of the day), "
        "when (cosine of the day)",
    ),
    Case(
        "dates as 31.12.2020",
        text("when,y\n31.12.2020,1\n01.02.2021,2\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when (elapsed), when (sine of the week), when (cosine of the week)",
    ),
    Case(
        "dates as 31.12.2020, named by an option",
        text("when,y\n31.12.2020,1\n"),
        "ingest rows.csv rows.zarr --target y --dates when",
        "when (elapsed)",
    ),
    Case(
        "dates of both orders",
        text("when,y\n01/02/2020,1\n03/04/2020,2\n"),
        "ingest rows.csv rows.zarr --target y --dates when",
        "column 'when' holds dates such as '01/02/2020', which %d/%m/%Y and %m/%d/%Y both read",
    ),
    Case(
        "a day that is not in the calendar",
        text("when,y\n2020-01-01,1\n2020-02-30,2\n"),
        "ingest rows.csv rows.zarr --target y --dates when",
        "rows.csv:3: '2020-02-30' of column 'when' is not a date",
    ),
    Case(
        "an id and free text",
        text("id,note,a,y\n" + "".join(f"{i},note number {i},{i},{i}\n" for i in range(30))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a",
    ),
    Case(
        "an id, named by an option",
        text("who,a,y\nx1,1,1\nx2,2,2\n"),
        "ingest rows.csv rows.zarr --target y --id who",
        "a",
    ),
    Case(
        "UUIDs",
        text("who,a,y\n" + "".join(f"0000000{i}-0000-0000-0000-000000000007,{i},{i}\n" for i in range(9))),
        "ingest rows.csv rows.zarr --target y",
        "rows.csv:2:1: '00000000-0000-0000-0000-000000000007' in column 'who' is an identifier, not a number; name the "
        "column by --id who if it tells which row it is, or leave it out by --drop who",
    ),
    Case(
        "columns named with a comma between them",
        text("age,job,home,y\n30,baker,A,1\n40,smith,B,2\n"),
        "ingest rows.csv rows.zarr --target y --categories job,home",
        "there is no column 'job,home' for --categories, but 'job' and 'home' are there; name each by itself",
    ),
    Case("two targets", text("a,u,v\n1,2,3\n4,5,6\n"), "ingest rows.csv rows.zarr --target u --target v", "a"),
    Case(
        "yes and no",
        text("member,y\nyes,1\nno,2\nyes,3\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "member",
    ),
    Case(
        "codes with leading zeros",
        text("zip,y\n00501,1\n10001,2\n00501,3\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "zip=00501, zip=10001",
    ),
    Case(
        "numbers that are categories",
        text("kind,y\n1,1\n2,2\n1,3\n"),
        "ingest rows.csv rows.zarr --target y --categories kind",
        "kind=1, kind=2",
    ),
    Case("a target of text", text("a,kind\n1,cat\n2,dog\n"), "ingest rows.csv rows.zarr --target kind", "a"),
    Case("row weights", text("a,n,y\n1,2,1\n2,3,2\n"), "ingest rows.csv rows.zarr --target y --weight n", "a"),
    Case(
        "infinity",
        text("a,y\ninf,1\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "rows.csv:2: inf of column 'a' is not finite",
    ),
    Case(
        "a column without any value",
        text("a,b,y\n1,,1\n2,,2\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a",
    ),
    Case(
        "dates of both orders, looked at",
        text("when,y\n01/02/2020,1\n03/04/2020,2\n01/02/2020,3\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when=01/02/2020, when=03/04/2020",
    ),
    Case(
        "dates as 15.03.21",
        text("when,y\n15.03.21,1\n16.03.21,2\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when (elapsed)",
    ),
    Case(
        "dates as 20200131",
        text("when,y\n" + "".join(f"202001{i + 1:02d},{i}\n" for i in range(9))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when (elapsed)",
    ),
    Case(
        "months as 2020-01, 2020/01 and 01.2020",
        text("a,b,c,y\n" + "".join(f"2020-{i:02d},2020/{i:02d},{i:02d}.2020,{i}\n" for i in range(1, 8))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a (elapsed), a (sine of the week), a (cosine of the week), b (elapsed), b (sine of the week), "
        "b (cosine of the week), c (elapsed), c (sine of the week), c (cosine of the week)",
    ),
    Case(
        "dates as Jan 31, 2020, and hours of a.m. and p.m.",
        text("day,at,y\n" + "".join(f'"Jan {i + 1}, 2020",01/{i + 13}/2020 {i + 1}:30 PM,{i}\n' for i in range(9))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "day (elapsed), at (elapsed), at (sine of the day), at (cosine of the day)",
    ),
    Case(
        "dates before 1970, and with zones",
        text("when,y\n1869-12-31T23:00:00-01:00,1\n1870-01-02,2\n1870-01-02T00:00:00Z,3\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when (elapsed)",
    ),
    Case(
        "zones after a space, and UTC",
        text("when,y\n2020-01-01 02:00:00 +0200,1\n2020-01-02 00:00:00 UTC,2\n2020-01-02 01:00:00 +01:00,3\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "when (elapsed)",
    ),
    Case(
        "two columns that look like ids",
        text("id,user_id,a,y\n" + "".join(f"{i},u{i},{i % 7},{i}\n" for i in range(30))),
        "ingest rows.csv rows.zarr --target y --schema auto --id user_id",
        "a",
    ),
    Case(
        "words for no number: n.a., -, None, NULL",
        text("a,y\n" + "".join(f"{['n.a.', '-', 'None', 'NULL', *range(8)][i % 12]},{i}\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a, a is missing",
    ),
    Case(
        "a rare text among numbers",
        text("a,y\n" + "".join(f"{'yes' if i == 7 else i},{i}\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a, a is missing",
    ),
    Case(
        "shares, prices and thousands",
        text("share,price,a,y\n" + "".join(f'{i}%,"${i},000.50",{i},{i}\n' for i in range(40))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "a",
    ),
    Case(
        "a target of shares",
        text("a,y\n" + "".join(f"{i},{i}%\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y",
        "column 'y' holds numbers with other signs, such as '0%' in rows.csv:2, each of which would be a class",
    ),
    Case(
        "a target of dates",
        text("a,y\n" + "".join(f"{i},2020-01-{i % 28 + 1:02d}\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y",
        "column 'y' holds dates, such as '2020-01-01' in rows.csv:2, each of which would be a class",
    ),
    Case(
        "labels with space around them, and of other case",
        text("a,y\n1, yes\n2,yes\n3,True \n4,TRUE\n"),
        "ingest rows.csv rows.zarr --target y",
        "a",
    ),
    Case(
        "one label in several cases",
        text("a,y\n1,yes\n2,Yes\n3,NO\n4,no\n"),
        "ingest rows.csv rows.zarr --target y",
        "a",
    ),
    Case(
        "a label that is missing",
        text("a,y\n1,cat\n2,NA\n3,dog\n"),
        "ingest rows.csv rows.zarr --target y",
        "y has 1 missing label,",
    ),
    Case(
        "no column that becomes a feature",
        text("note,y\n" + "".join(f"number {i},{i}\n" for i in range(40))),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "no column becomes a feature (column 'note' (text))",
    ),
    Case(
        "a text after 100,000 numbers",
        text("a,y\n" + "".join(f"{i},{i}\n" for i in range(101_000)) + "x,1\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "rows.csv:101002:1: 'x' in column 'a' is not a number",
    ),
    Case(
        "a weight below 0",
        text("a,w,y\n1,1,1\n2,-1,2\n"),
        "ingest rows.csv rows.zarr --target y --weight w",
        "weights must not be negative, row 1",
    ),
    Case(
        "a number beyond float64",
        text("a,y\n1e400,1\n2,2\n"),
        "ingest rows.csv rows.zarr --target y --schema auto",
        "inf of column 'a' is not finite",
    ),
    Case(
        "a schema with a wrong word",
        both(text(JOB), text('[[columns]]\nname = "age"\nkind = "integer"\n', "s.toml")),
        "ingest rows.csv rows.zarr --schema s.toml",
        "column 'age': kind must be one of number, boolean, category, date, text, not 'integer'",
    ),
    Case(
        "a misspelt column",
        text(JOB),
        "ingest rows.csv rows.zarr --target y --schema auto --drop Jobs",
        "there is no column 'Jobs' (did you mean 'job'?)",
    ),
    Case(
        "thousands with commas, and points",
        text('a,y\n"1,234.5",2\n"2,345.6",3\n"12,345.6",4\n'),
        "ingest rows.csv rows.zarr --target y",
        "rows.csv:2:1: '1,234.5' in column 'a' is a number with other signs",
    ),
    Case(
        "infinity, without a look at the rows",
        text("a,y\n1,2\ninf,3\n"),
        "ingest rows.csv rows.zarr --target y",
        "in rows.csv:3; correct such values",
    ),
]
