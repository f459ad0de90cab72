// Python bindings of the verifier: they take a text and an instance's cells and return the judgement. The GIL is held throughout,
// because an ordinary answer takes only a few microseconds.
#include <pybind11/pybind11.h>

#include "answers/answers.hpp"

namespace py = pybind11;

namespace t2t {
namespace {

// A tuple (row, column) on the grid.
NamedCell cell_of(py::handle item, int size) {
    if (PyTuple_CheckExact(item.ptr()) && PyTuple_GET_SIZE(item.ptr()) == 2) {
        int overflow = 0;
        PyObject* const row = PyTuple_GET_ITEM(item.ptr(), 0);
        PyObject* const column = PyTuple_GET_ITEM(item.ptr(), 1);
        if (PyLong_CheckExact(row) && PyLong_CheckExact(column)) {
            const long r = PyLong_AsLongAndOverflow(row, &overflow), c = PyLong_AsLongAndOverflow(column, &overflow);
            if (r >= 0 && r < size && c >= 0 && c < size) return {static_cast<int>(r), static_cast<int>(c)};
        }
    }
    throw py::value_error("a cell is a tuple (row, column) on the grid");
}

Question question_of(int size, const py::tuple& holes, const py::tuple& starts, const py::tuple& goals) {
    if (size < 3 || size > Question::max_size) throw py::value_error("size must lie in 3..32");
    if (starts.empty() || starts.size() > Question::max_agents || starts.size() != goals.size()) {
        throw py::value_error("there must be 1..16 starts and as many goals");
    }
    Question question;
    question.size = size;
    question.agents = static_cast<int>(starts.size());
    for (const py::handle item : holes) {
        const NamedCell cell = cell_of(item, size);
        question.holes[cell.row * size + cell.column] = true;
    }
    for (int agent = 0; agent < question.agents; ++agent) {
        question.starts[agent] = cell_of(PyTuple_GET_ITEM(starts.ptr(), agent), size);
        question.goals[agent] = cell_of(PyTuple_GET_ITEM(goals.ptr(), agent), size);
    }
    return question;
}

// Reads only a plain str, because the characters of a subclass may mean something else.
bool read(py::handle text, WrittenAnswer& answer) {
    if (!PyUnicode_CheckExact(text.ptr())) return false;
    const std::size_t length = PyUnicode_GET_LENGTH(text.ptr());
    switch (PyUnicode_KIND(text.ptr())) {
        case PyUnicode_1BYTE_KIND: return read_answer<std::uint8_t>(PyUnicode_1BYTE_DATA(text.ptr()), length, answer);
        case PyUnicode_2BYTE_KIND: return read_answer<std::uint16_t>(PyUnicode_2BYTE_DATA(text.ptr()), length, answer);
        case PyUnicode_4BYTE_KIND: return read_answer<std::uint32_t>(PyUnicode_4BYTE_DATA(text.ptr()), length, answer);
        default: return false;
    }
}

py::dict paths_of(const WrittenAnswer& answer) {
    py::dict paths;
    for (const auto& written : answer.paths) {
        py::tuple path(written.end - written.begin);
        for (std::size_t i = written.begin; i < written.end; ++i) {
            path[i - written.begin] = py::make_tuple(answer.cells[i].row, answer.cells[i].column);
        }
        paths[py::int_(written.label)] = path;
    }
    return paths;
}

py::object judge_answer(py::handle text, int size, const py::tuple& holes, const py::tuple& starts, const py::tuple& goals) {
    const Question question = question_of(size, holes, starts, goals);
    WrittenAnswer answer;
    if (!read(text, answer)) return py::none();
    const Judgement judgement = judge(question, answer);
    py::object paths = judgement.valid() ? py::object(py::none()) : py::object(paths_of(answer));
    return py::make_tuple(judgement.checks, judgement.makespan, judgement.sum_of_costs, std::move(paths));
}

}  // namespace

void bind_answers(py::module_& module) {
    using namespace py::literals;
    module.def("judge_answer", &judge_answer, "text"_a, "size"_a, "holes"_a, "starts"_a, "goals"_a,
               "(checks, makespan, sum_of_costs, paths): bit i of `checks` says whether the i-th of the eight checks holds.\n"
               "If all do, `paths` is None; otherwise the costs are -1 and `paths` has the cells by label. Returns None instead of\n"
               "the tuple if the text holds anything that only the parser in Python can read.");
}

}  // namespace t2t
