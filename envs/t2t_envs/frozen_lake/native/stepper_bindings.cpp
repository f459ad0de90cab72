#include <pybind11/pybind11.h>

namespace t2t {
void bind_stepper(pybind11::module_&) {}
}  // namespace t2t
