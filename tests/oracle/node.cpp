// SPDX-License-Identifier: Apache-2.0
#include "tests/oracle/node.h"

#include <algorithm>

namespace oracle {

const Array& Node::in(Index k) const {
  if (!has(k)) throw Undefined(type() + ": input " + std::to_string(k) + " is missing");
  return *inputs_[Array::to_size(k)];
}
bool Node::any_moving() const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [](const Array* a) { return a != nullptr && a->moving; });
}
bool Node::any_real() const {
  return std::any_of(inputs_.begin(), inputs_.end(),
                     [](const Array* a) { return a != nullptr && a->real; });
}

const onnx::AttributeProto* Node::find(const std::string& name) const {
  for (const auto& a : proto_.attribute()) {
    if (a.name() == name) return &a;
  }
  return nullptr;
}
Index Node::integer(const std::string& name, Index fallback) const {
  const auto* a = find(name);
  return a != nullptr ? a->i() : fallback;
}
Number Node::real(const std::string& name, float fallback) const {
  const auto* a = find(name);
  return Number(static_cast<double>(a != nullptr ? a->f() : fallback));
}
std::string Node::text(const std::string& name, const std::string& fallback) const {
  const auto* a = find(name);
  return a != nullptr ? a->s() : fallback;
}
std::optional<std::vector<Index>> Node::integers(const std::string& name) const {
  const auto* a = find(name);
  if (a == nullptr) return std::nullopt;
  return std::vector<Index>(a->ints().begin(), a->ints().end());
}
std::optional<std::vector<Number>> Node::reals(const std::string& name) const {
  const auto* a = find(name);
  if (a == nullptr) return std::nullopt;
  std::vector<Number> list;
  for (const float f : a->floats()) list.emplace_back(static_cast<double>(f));
  return list;
}
std::optional<std::vector<Index>> Node::input_integers(Index k) const {
  if (!has(k)) return std::nullopt;
  return oracle::integers(in(k));
}

const Table& operators() {
  static const Table kTable = [] {
    Table table;
    for (const auto add :
         {add_elementwise, add_broadcasting, add_casts, add_reductions, add_rows, add_layouts,
          add_indexing, add_selections, add_constants, add_contractions, add_convolutions,
          add_pools, add_normalisations, add_losses, add_quantisation, add_resizing}) {
      add(table);
    }
    return table;
  }();
  return kTable;
}

Dims broadcast_dims(const Dims& a, const Dims& b) {
  Dims full(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < full.size(); ++i) {
    const Index u = i < a.size() ? a[a.size() - 1 - i] : 1;
    const Index v = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (u != v && u != 1 && v != 1) throw Undefined("shapes do not fit together");
    full[full.size() - 1 - i] = u == 1 ? v : u;
  }
  return full;
}
Index broadcast_at(const Dims& from, const Dims& index) {
  if (from.size() > index.size()) throw Undefined("an operand with more axes than the result");
  Index at = 0;
  const std::size_t skip = index.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i) {
    at = at * from[i] + (from[i] == 1 ? 0 : index[skip + i]);
  }
  return at;
}

Lines::Lines(const Dims& dims, Index axis) : outer(1), length(1), inner(1) {
  for (std::size_t a = 0; a < dims.size(); ++a) {
    const auto i = static_cast<Index>(a);
    (i < axis ? outer : i == axis ? length : inner) *= dims[a];
  }
}

Windows::Windows(const Node& node, const Dims& image, Dims kernel_dims, bool ceil_mode)
    : kernel(std::move(kernel_dims)), in(image.begin() + 2, image.end()) {
  const std::size_t n = in.size();
  strides = node.integers("strides").value_or(Dims(n, 1));
  dilations = node.integers("dilations").value_or(Dims(n, 1));
  const Dims pads = node.integers("pads").value_or(Dims(2 * n, 0));
  const std::string mode = node.text("auto_pad", "NOTSET");
  for (std::size_t a = 0; a < n; ++a) {
    const Index extent = (kernel[a] - 1) * dilations[a] + 1;
    begin.push_back(pads[a]);
    end.push_back(pads[a + n]);
    if (mode == "VALID") begin[a] = end[a] = 0;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      out.push_back((in[a] + strides[a] - 1) / strides[a]);
      const Index total = std::max<Index>(0, (out[a] - 1) * strides[a] + extent - in[a]);
      begin[a] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      end[a] = total - begin[a];
      continue;
    }
    const Index room = in[a] + begin[a] + end[a] - extent;
    if (room < 0) throw Undefined("the window does not fit");
    Index windows = room / strides[a] + 1;
    if (ceil_mode && room % strides[a] != 0 && windows * strides[a] < in[a] + begin[a]) ++windows;
    out.push_back(windows);
  }
}

}  // namespace oracle
