"""`dalenius account`, as a user meets it."""

import json

import pytest

from dalenius.app.cli import build, run

EXAMPLE = [
    {"mechanism": "gaussian", "sigma": 30, "times": 1000},
    {"mechanism": "laplace", "scale": 10, "times": 100},
    {"mechanism": "exponential", "epsilon": 0.1},
    {"mechanism": "randomized_response", "epsilon": 0.5, "categories": 4},
    {"mechanism": "gaussian", "sigma": 1, "sampling": {"poisson": 0.01}, "times": 10000},
]


@pytest.fixture
def call(tmp_path, capsys):
    """Runs the command on a list (or a raw text) and returns exit code, stdout, stderr."""

    def calling(content, *options):
        file = tmp_path / "events.json"
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        code = run(build(), ["account", str(file), *options])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return calling


def test_the_example_of_the_interfaces(call):
    code, out, _ = call(EXAMPLE, "--delta", "1e-6", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["delta"] == 1e-6 and answer["method"] == "pld"
    assert answer["epsilon"] == answer["bounds"]["pld"] == min(v for v in answer["bounds"].values() if v)
    assert answer["bounds"]["gaussian"] is None and answer["bounds"]["zcdp"] is None


def test_it_reads_stdin(monkeypatch, capsys):
    import io

    class Stdin:
        buffer = io.BytesIO(b'[{"mechanism": "gaussian", "sigma": 1}]')

    monkeypatch.setattr("sys.stdin", Stdin)
    assert run(build(), ["account", "-", "--delta", "1e-6", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"] == pytest.approx(4.88655, abs=1e-4)


def test_people_get_a_table_with_the_best_method_and_groups(call):
    code, out, _ = call([{"mechanism": "laplace", "scale": 10, "times": 100}], "--delta", "1e-6")
    assert code == 0
    assert "ε = 4.6926" in out and "optimal" in out and "groups of 10" in out


def test_all_kinds_and_ways_of_writing(call):
    entries = [
        {"mechanism": "discrete_gaussian", "sigma": 3.5, "sensitivity": 2, "times": 2},
        {"mechanism": "discrete_laplace", "scale": 7, "sensitivity": 3},
        {"mechanism": "pure", "epsilon": 0.1},
        {"mechanism": "approx", "epsilon": 0.1, "delta": 1e-8},
        {"mechanism": "noisy_max", "epsilon": 0.1},
        {"mechanism": "zcdp", "rho": 0.001},
        {"parallel": [{"mechanism": "pure", "epsilon": 0.2}, {"mechanism": "laplace", "scale": 9}], "times": 2},
    ]
    code, out, _ = call(entries, "--json")
    assert code == 0 and json.loads(out)["epsilon"] > 0
    sampled = {"mechanism": "gaussian", "sigma": 1, "sampling": {"sample": 10, "population": 1000}, "times": 100}
    code, out, _ = call({"neighbors": "substitute", "events": [sampled]}, "--json")
    assert code == 0 and json.loads(out)["neighbors"] == "substitute"


def test_sensitivity_scales_the_noise(call):
    _, scaled, _ = call([{"mechanism": "laplace", "scale": 50, "sensitivity": 5, "times": 100}], "--json")
    _, plain, _ = call([{"mechanism": "laplace", "scale": 10, "times": 100}], "--json")
    assert scaled == plain


def test_fixed_questions_are_cheaper_for_exponential_mechanisms(call):
    entries = [{"mechanism": "exponential", "epsilon": 0.1, "times": 50}]
    _, adaptive, _ = call(entries, "--json")
    _, fixed, _ = call(entries, "--json", "--fixed")
    assert json.loads(fixed)["epsilon"] < json.loads(adaptive)["epsilon"]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_plots_are_drawn(call, tmp_path, ending):
    target = tmp_path / f"cost.{ending}"
    code, out, err = call([{"mechanism": "laplace", "scale": 100}], "--plot", str(target), "--json")
    assert code == 0 and json.loads(out)["epsilon"]
    start = target.read_bytes()[:5]
    assert start.startswith(b"\x89PNG" if ending == "png" else b"<?xml")
    assert str(target) in err.replace("\n", "")


def error_of(out):
    answer = json.loads(out)
    assert set(answer) == {"error"}
    error = answer["error"]
    assert set(error) == {"code", "message", "why", "fix", "charge", "fits", "at"}
    assert error["charge"] == {"epsilon": 0, "delta": 0}
    assert error["message"] and error["why"] and error["fix"]
    return error


@pytest.mark.parametrize("epsilon", ["-1", "0", "-0.0", "NaN", "Infinity", "1e-320", "true", '"1"', "null", "1e999"])
@pytest.mark.parametrize("mechanism", ["pure", "exponential", "randomized_response", "noisy_max"])
def test_bad_epsilons_are_refused(call, mechanism, epsilon):
    code, out, _ = call(f'[{{"mechanism": "{mechanism}", "epsilon": {epsilon}}}]', "--json")
    assert code == 2 and error_of(out)["code"] == "input.invalid"


@pytest.mark.parametrize("delta", ["-1", "nan", "1", "2", "inf", "abc", "1e-6x"])
def test_bad_deltas_are_refused(call, delta):
    code, out, _ = call([{"mechanism": "pure", "epsilon": 1}], "--json", f"--delta={delta}")
    assert code == 2 and error_of(out)["code"] == "input.invalid"


@pytest.mark.parametrize(
    "entry",
    [
        {"mechanism": "gaussian", "sigma": 0},
        {"mechanism": "gaussian", "sigma": -1},
        {"mechanism": "gaussian", "sigma": True},
        {"mechanism": "gaussian", "sigma": "30"},
        {"mechanism": "gaussian"},
        {"mechanism": "gaussian", "sigma": 1, "sensitivity": 0},
        {"mechanism": "laplace", "scale": -3},
        {"mechanism": "laplace", "scale": 1, "times": 0},
        {"mechanism": "laplace", "scale": 1, "times": 1.5},
        {"mechanism": "laplace", "scale": 1, "times": True},
        {"mechanism": "discrete_laplace", "scale": 1, "sensitivity": 0.5},
        {"mechanism": "randomized_response", "epsilon": 1, "categories": 1},
        {"mechanism": "approx", "epsilon": 1, "delta": 1},
        {"mechanism": "approx", "epsilon": 1, "delta": -1},
        {"mechanism": "gaussian", "sigma": 1, "sampling": {"poisson": 1.5}},
        {"mechanism": "gaussian", "sigma": 1, "sampling": {"poisson": 0}},
        {"mechanism": "gaussian", "sigma": 1, "sampling": {"magic": 0.1}},
        {"mechanism": "gaussian", "sigma": 1, "sampling": 0.1},
        {"mechanism": "gaussian", "sigma": 1, "sampling": {"sample": 10, "population": 5}},
        {"mechanism": "gaussian", "sigma": 1, "seed": 7},
        {"mechanism": "magic", "epsilon": 1},
        {"epsilon": 1},
        {"parallel": []},
        "gaussian",
        3,
        None,
    ],
)
def test_bad_entries_are_refused_with_what_to_do(call, entry):
    code, out, _ = call([entry], "--json")
    error = error_of(out)
    assert code == 2 and error["code"] == "input.invalid" and "entry 1" in error["message"]


@pytest.mark.parametrize("where", ["times", "categories", "sensitivity", "epsilon"])
def test_numbers_of_hundreds_of_digits_are_refused(call, where):
    kind = {"categories": "randomized_response", "sensitivity": "discrete_laplace"}.get(where, "pure")
    entry = {"mechanism": kind, "epsilon": 1} if kind != "discrete_laplace" else {"mechanism": kind, "scale": 1}
    code, out, _ = call([entry | {where: 10**400}], "--json")
    assert code == 2 and error_of(out)["code"] == "input.invalid"


def test_a_key_that_stands_twice_is_refused(call):
    code, out, _ = call('[{"mechanism": "pure", "epsilon": 1, "epsilon": 0.1}]', "--json")
    assert code == 2 and "twice" in error_of(out)["message"]


def test_without_stdin_the_input_is_empty(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", None)
    assert run(build(), ["account", "--json"]) == 2
    assert "empty" in error_of(capsys.readouterr().out)["message"]


@pytest.mark.parametrize(
    "text", ["", "{", "[", "[1,]", "[]", "{}", "null", '"x"', "3", "[" * 100_000, "[" + "9" * 5000 + "]", "\ufeff[}"]
)
def test_malformed_files_are_refused(call, text):
    code, out, _ = call(text, "--json")
    assert code == 2 and error_of(out)["code"] == "input.invalid"


def test_a_syntax_error_says_where(call):
    code, out, _ = call('[\n  {"mechanism": "laplace" "scale": 1}]', "--json")
    assert code == 2 and error_of(out)["at"] == {"line": 2, "column": 27}


def test_a_near_miss_is_named(call):
    _, _, err = call([{"mechanism": "gausian", "sigma": 1}])
    assert "gaussian" in err and "Did you mean" in err


def test_a_missing_file_is_something_outside(capsys):
    assert run(build(), ["account", "no-such-file.json", "--json"]) == 5
    assert error_of(capsys.readouterr().out)["code"] == "source.unavailable"


def test_a_plot_of_an_unknown_kind_is_refused_before_any_work(call):
    code, out, _ = call([{"mechanism": "pure", "epsilon": 1}], "--json", "--plot", "cost.pdf")
    assert code == 2 and ".png or .svg" in error_of(out)["fix"]


def test_no_finite_bound_is_said_and_is_null(call):
    entries = [{"mechanism": "approx", "epsilon": 1, "delta": 1e-3}]
    code, out, _ = call(entries, "--json", "--delta", "1e-6")
    assert code == 0 and json.loads(out)["epsilon"] is None and json.loads(out)["method"] == "none"
    _, text, _ = call(entries, "--delta", "1e-6")
    assert "No method" in text
