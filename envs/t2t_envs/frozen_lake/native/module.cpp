// The Python module of the native core. Every part has its bindings in its own file.
#include <pybind11/pybind11.h>

namespace t2t {
void bind_solver(pybind11::module_& module);
void bind_generator(pybind11::module_& module);
void bind_sources(pybind11::module_& module);
void bind_stepper(pybind11::module_& module);
void bind_vector_stepper(pybind11::module_& module);
void bind_demonstrations(pybind11::module_& module);
void bind_answers(pybind11::module_& module);
}  // namespace t2t

PYBIND11_MODULE(_native, module) {
    module.doc() = "Native core of t2t_envs.frozen_lake: exact solver, generator, batched stepping, verifier.";
    t2t::bind_solver(module);
    t2t::bind_generator(module);
    t2t::bind_sources(module);
    t2t::bind_stepper(module);
    t2t::bind_vector_stepper(module);
    t2t::bind_demonstrations(module);
    t2t::bind_answers(module);
}
