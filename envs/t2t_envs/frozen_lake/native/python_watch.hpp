// The Python side of a watch over the core's work: lets Ctrl-C through and reports progress.
#pragma once
#include <pybind11/pybind11.h>

#include <optional>

#include "watch.hpp"

namespace t2t {

// Throws if a signal is pending whose handler raises (Ctrl-C). Only Python's main thread handles signals.
inline void check_signals() {
    const pybind11::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

// The same, and then calls `tell(progress)` if there is a progress callback.
template <typename Tell>
void report(const std::optional<pybind11::function>& progress, Tell tell) {
    const pybind11::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
    if (progress) tell(*progress);
}

}  // namespace t2t
