// An instance up to relabelling its agents and the 8 grid symmetries, as bytes. Instance.canonical() computes the same in Python.
#pragma once
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "solver/problem.hpp"

namespace t2t {

// How the 8 symmetries of the square move the cells of an N x N grid. The first one is the identity.
class Symmetries {
public:
    explicit Symmetries(int size) : size_(size) {
        const int m = size - 1;
        for (auto& map : maps_) map.resize(static_cast<std::size_t>(size) * size);
        for (int r = 0; r < size; ++r) {
            for (int c = 0; c < size; ++c) {
                const std::array<std::pair<int, int>, 8> images{
                    {{r, c}, {r, m - c}, {m - r, c}, {m - r, m - c}, {c, r}, {c, m - r}, {m - c, r}, {m - c, m - r}}};
                for (int s = 0; s < 8; ++s) {
                    maps_[s][r * size + c] = static_cast<Cell>(images[s].first * size + images[s].second);
                }
            }
        }
    }
    int size() const { return size_; }
    Cell image(int symmetry, Cell cell) const { return maps_[symmetry][cell]; }
    void sorted_image(int symmetry, const std::vector<Cell>& cells, std::vector<Cell>& out) const {
        out.clear();
        for (const Cell cell : cells) out.push_back(image(symmetry, cell));
        std::sort(out.begin(), out.end());
    }

private:
    int size_;
    std::array<std::vector<Cell>, 8> maps_;
};

inline void append_big_endian(std::string& bytes, int number) {
    bytes.push_back(static_cast<char>(number >> 8));
    bytes.push_back(static_cast<char>(number & 0xFF));
}

// Every agent's start and goal under one symmetry, in ascending order of the start.
inline void sorted_agents(const Symmetries& symmetries, int symmetry, const std::vector<Cell>& starts,
                          const std::vector<Cell>& goals, std::vector<std::pair<Cell, Cell>>& out) {
    out.clear();
    for (std::size_t i = 0; i < starts.size(); ++i) {
        out.emplace_back(symmetries.image(symmetry, starts[i]), symmetries.image(symmetry, goals[i]));
    }
    std::sort(out.begin(), out.end());
}

// Size, number of holes, number of agents, the holes in ascending order, each agent's start and goal: 16-bit big-endian.
inline std::string form_bytes(int size, const std::vector<Cell>& holes, const std::vector<std::pair<Cell, Cell>>& agents) {
    std::string bytes;
    bytes.reserve(2 * (3 + holes.size() + 2 * agents.size()));
    append_big_endian(bytes, size);
    append_big_endian(bytes, static_cast<int>(holes.size()));
    append_big_endian(bytes, static_cast<int>(agents.size()));
    for (const Cell hole : holes) append_big_endian(bytes, hole);
    for (const auto& [start, goal] : agents) {
        append_big_endian(bytes, start);
        append_big_endian(bytes, goal);
    }
    return bytes;
}

// The smallest of the 8 symmetric forms. The holes come first in the bytes, so agents are compared only if the holes agree.
inline std::string canonical_form(const Symmetries& symmetries, const std::vector<Cell>& holes,
                                  const std::vector<Cell>& starts, const std::vector<Cell>& goals) {
    std::vector<Cell> best_holes, moved_holes;
    std::vector<std::pair<Cell, Cell>> best_agents, moved_agents;
    for (int s = 0; s < 8; ++s) {
        symmetries.sorted_image(s, holes, moved_holes);
        if (s > 0 && moved_holes > best_holes) continue;
        sorted_agents(symmetries, s, starts, goals, moved_agents);
        if (s > 0 && moved_holes == best_holes && moved_agents >= best_agents) continue;
        best_holes = moved_holes;
        best_agents = moved_agents;
    }
    return form_bytes(symmetries.size(), best_holes, best_agents);
}

// The instance up to relabelling its agents, but without the symmetries.
inline std::string variant_form(const Symmetries& symmetries, const std::vector<Cell>& holes,
                                const std::vector<Cell>& starts, const std::vector<Cell>& goals) {
    std::vector<Cell> sorted_holes;
    std::vector<std::pair<Cell, Cell>> agents;
    symmetries.sorted_image(0, holes, sorted_holes);
    sorted_agents(symmetries, 0, starts, goals, agents);
    return form_bytes(symmetries.size(), sorted_holes, agents);
}

}  // namespace t2t
