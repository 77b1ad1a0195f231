"""JSON becomes dataclasses: every shape of the document, there and back."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime
from types import NoneType
from typing import Any, Literal, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonday.client import UnexpectedAnswer, answers
from noonday.client.decoding import decode

SHAPES = [getattr(answers, name) for name in answers.__all__]
instants = st.datetimes(timezones=st.just(datetime.fromisoformat("2027-01-01T00:00:00+00:00").tzinfo))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cat:
    type: Literal["cat"]
    lives: int
    from_: str | None = field(metadata={"wire": "from"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Dog:
    type: Literal["dog"]
    born: datetime | None
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    width: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WideBox:
    width: int
    height: int


def wire(value: Any) -> Any:
    """A decoded value as it stood on the wire."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.metadata.get("wire", one.name): wire(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, list):
        return [wire(one) for one in value]
    if isinstance(value, dict):
        return {key: wire(one) for key, one in value.items()}
    return value.isoformat() if isinstance(value, date) else value


def made_of(form: Any) -> st.SearchStrategy[Any]:
    """Values of a type, built from its annotations."""
    hints = get_type_hints(form)
    return st.builds(form, **{one.name: _of(hints[one.name]) for one in fields(form)})


def _of(hint: Any) -> st.SearchStrategy[Any]:
    if hint is Any:
        return st.sampled_from([None, "text", 1, {"a": [True]}])
    if is_dataclass(hint):
        return st.deferred(lambda: made_of(hint))
    origin, inner = getattr(hint, "__origin__", None), get_args(hint)
    if origin is list:
        return st.lists(_of(inner[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(st.text(max_size=3), _of(inner[1]), max_size=2)
    if inner and origin is not Literal:
        return st.one_of(*map(_of, inner))
    plain = {
        str: st.text(max_size=5),
        int: st.integers(),
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
        NoneType: st.none(),
        datetime: instants,
        date: st.dates(),
    }
    return st.sampled_from(inner) if origin is Literal else plain[hint]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: str(shape.__name__))
def test_every_shape_survives_the_wire(shape: Any) -> None:
    @settings(max_examples=4, deadline=None, database=None)
    @given(made_of(shape))
    def survives(value: Any) -> None:
        sent = wire(value)
        assert wire(decode(sent, shape)) == sent
        assert decode({**sent, "a_field_of_tomorrow": 1}, shape) == decode(sent, shape)

    survives()


def test_objects_are_told_apart_by_their_type_or_their_fields() -> None:
    cat = {"type": "cat", "lives": 9, "from": None}
    assert decode(cat, Cat | Dog) == Cat(type="cat", lives=9, from_=None)
    dog = decode({"type": "dog", "born": "2027-01-04T12:00:00Z", "weight": 3}, Cat | Dog | None)
    assert isinstance(dog, Dog)
    assert dog.born == datetime.fromisoformat("2027-01-04T12:00:00+00:00")
    assert (dog.weight, type(dog.weight)) == (3.0, float)
    assert isinstance(decode({"width": 1, "height": 2}, Box | WideBox), WideBox)
    assert isinstance(decode({"width": 1}, Box | WideBox), Box)
    assert decode(None, Cat | None) is None


def test_what_an_older_server_does_not_send_is_none_where_that_may_be() -> None:
    assert decode({"type": "dog", "weight": 1.5}, Dog) == Dog(type="dog", born=None, weight=1.5)
    with pytest.raises(UnexpectedAnswer, match="Dog has no field 'weight'"):
        decode({"type": "dog", "born": None}, Dog)


@pytest.mark.parametrize(
    ("value", "form"),
    [
        ("1", int),
        (True, int),
        (1, str),
        (None, str),
        (1.5, int),
        ("soon", datetime),
        (5, datetime),
        ({}, list[int]),
        ([1, "2"], list[int]),
        ({"a": 1}, dict[str, str]),
        ([], Box),
        ({"width": "1"}, Box),
        ("x", int | None),
    ],
)
def test_what_does_not_fit_is_said(value: Any, form: Any) -> None:
    with pytest.raises(UnexpectedAnswer):
        decode(value, form)
