"""Names of evaluation files: what they say can be read off them, and no two kinds of results have the same."""

from hypothesis import given
from hypothesis import strategies as st

from tutelage.runs import presets
from tutelage.runs.evaluations import Subject, levels_name

SUITES = st.sampled_from(sorted({name for domain in presets.DOMAINS.values() for name in domain().suites()}))
UPDATES = st.integers(0, 10**9)
LEVELS = st.builds(levels_name, st.text(), st.text("0123456789abcdef", min_size=64, max_size=64))
SUBJECTS = st.one_of(
    st.builds(Subject, SUITES, UPDATES, greedy=st.booleans(), real=st.booleans()),
    st.builds(Subject, LEVELS, UPDATES, st.just("levels"), greedy=st.booleans()),
    st.builds(Subject, st.just(""), UPDATES, st.just("worst"), st.integers(1, 10**6), greedy=st.booleans()),
)


@given(SUBJECTS)
def test_a_name_says_what_it_is_of(subject):
    assert Subject.of(subject.file_name) == subject


@given(st.lists(SUBJECTS, min_size=2, max_size=2, unique=True))
def test_no_two_have_the_same_name(pair):
    assert pair[0].file_name != pair[1].file_name


@given(st.sampled_from(sorted(presets.PRESETS)), UPDATES, st.booleans())
def test_levels_of_another_generator_have_their_own_name(preset, updates, greedy):
    subject = Subject(preset, updates, "worst", 100, greedy)
    found = Subject.of(subject.file_name)
    assert found is not None
    assert found.name == preset.replace("/", "-")
    assert (found.kind, found.greedy) == ("worst", greedy)


@given(st.text(max_size=300))
def test_any_name_is_read_or_passed_over(name):
    subject = Subject.of(name)
    assert subject is None or subject.updates >= 0


def test_names_that_earlier_versions_wrote_are_read():
    assert Subject.of("bipedal-00001800-real.csv") == Subject("bipedal", 1800, real=True)
    assert Subject.of("maze-12-00020000.csv") == Subject("maze-12", 20000)
    assert Subject.of("cvar-00020000-10000-levels-maze-sfl-greedy.csv") == Subject(
        "maze-sfl", 20000, "worst", 10000, greedy=True
    )


def test_the_name_of_a_file_of_levels_is_short_and_plain():
    name = Subject(levels_name("../ü \n" * 100, "0" * 64), 1, "levels").file_name
    assert len(name) < 100
    assert "/" not in name
    assert name.isascii()
