// What a watch over the core's work does on Python's side: lets Ctrl-C through, and tells how far the work is.
#pragma once
#include <pybind11/pybind11.h>

#include <optional>

#include "watch.hpp"

namespace t2t {

// Throws where a signal is pending whose handler raises (Ctrl-C). Only Python's main thread ever gets to see one.
inline void check_signals() {
    const pybind11::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

// The same, and then `tell(progress)`, where there is somebody to tell.
template <typename Tell>
void report(const std::optional<pybind11::function>& progress, Tell tell) {
    const pybind11::gil_scoped_acquire acquire;
    if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
    if (progress) tell(*progress);
}

}  // namespace t2t
