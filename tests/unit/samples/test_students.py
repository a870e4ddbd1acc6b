"""The students are the same for everyone."""

from dalenius.samples.students import DEPARTMENTS, EDITORS, GENDERS, MOST_SCHOLARSHIP, students


def test_the_table_is_seeded_and_in_its_bounds():
    rows = students(500)
    assert rows == students(500) and rows[:10] == students(10)
    assert len({row.student_id for row in rows}) == 500
    assert {row.editor for row in rows} == set(EDITORS) and {row.department for row in rows} == set(DEPARTMENTS)
    assert {row.gender for row in rows} <= set(GENDERS)
    assert all(0 <= row.scholarship <= MOST_SCHOLARSHIP for row in rows)
    assert 0 < sum(row.scholarship > 0 for row in rows) < 500
    assert all(1960 < row.birth_date.year < 2009 for row in rows)
