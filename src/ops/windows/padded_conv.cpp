// SPDX-License-Identifier: Apache-2.0
#include "ops/windows/padded_conv.h"

#include <algorithm>

#include "ops/box.h"
#include "ops/linear/linear_gain.h"

namespace lipscope {
namespace {

// Samples of the padded image.
struct Buffer {
  Buffer(const ValueType& type, Storage storage, Index count) : type_(type) {
    const std::size_t width = storage == Storage::kFloat ? sizeof(float) : sizeof(double);
    const Index size = element_count(type.shape);
    bytes_.resize(width * static_cast<std::size_t>(size * count));
    view = {type.type, storage, &type_.shape, size, bytes_.data(), size};
  }
  [[nodiscard]] ConstView read() const {
    return {view.type, view.storage, view.shape, view.size, view.data, view.stride};
  }
  MutView view;

 private:
  ValueType type_;
  std::vector<std::byte> bytes_;
};

class PaddedConvOp final : public Op {
 public:
  PaddedConvOp(std::shared_ptr<const Op> pad, std::shared_ptr<const Op> conv, ValueType image,
               PaddedConv map)
      : pad_(std::move(pad)),
        conv_(std::move(conv)),
        padded_(pad_->infer(std::vector<ValueType>{std::move(image)})[0]),
        map_(map) {}

  std::string_view name() const override { return "PaddedConv"; }
  std::vector<ValueType> infer(std::span<const ValueType> in) const override {
    return conv_->infer(behind_pad(in, padded_));
  }

  void eval(const EvalArgs& args) const override {
    const Buffer padded = pad(args.in[0], args.count);
    conv_->eval({behind_pad(args.in, padded.read()), args.out, args.count});
  }

  bool differentiable() const override { return true; }

  void jvp(const JvpArgs& args) const override {
    const Buffer padded = pad(args.in[0], args.count);
    Buffer tangent(padded_, Storage::kDouble, args.count);
    if (args.tangent_in[0]) {
      const ConstView out = padded.read();
      pad_->jvp(
          {args.in.first(1), {&out, 1}, args.tangent_in.first(1), {&tangent.view, 1}, args.count});
    }
    const ConstView moved = args.tangent_in[0] ? tangent.read() : ConstView{};
    conv_->jvp({behind_pad(args.in, padded.read()), args.out, behind_pad(args.tangent_in, moved),
                args.tangent_out, args.count});
  }

  void vjp(const VjpArgs& args) const override {
    const Buffer padded = pad(args.in[0], args.count);
    Buffer pulled(padded_, Storage::kDouble, args.count);
    const MutView wanted = args.grad_in[0] ? pulled.view : MutView{};
    conv_->vjp({behind_pad(args.in, padded.read()), args.out, args.grad_out,
                behind_pad(args.grad_in, wanted), args.count});
    if (!args.grad_in[0]) return;
    const ConstView out = padded.read(), grad = pulled.read();
    pad_->vjp({args.in.first(1), {&out, 1}, {&grad, 1}, args.grad_in.first(1), args.count});
  }

  // Every entry of the padded image is a copy of one of the image, or a constant.
  bool matrix(const MatrixQuery& query, const EntryVisitor& visit) const override {
    if (query.wrt != 0) return false;
    std::vector<Index> source(static_cast<std::size_t>(element_count(padded_.shape)), -1);
    const bool known = pad_->matrix({query.in.first(1)}, [&](Index row, Index col, double, double) {
      source[static_cast<std::size_t>(row)] = col;
    });
    if (!known) return false;
    // The conv looks at the boxes of its weights only.
    return conv_->matrix(query, [&](Index row, Index col, double lo, double hi) {
      const Index from = source[static_cast<std::size_t>(col)];
      if (from >= 0) visit(row, from, lo, hi);
    });
  }
  std::optional<std::vector<Box>> range(std::span<const Box> in) const override {
    const auto padded = pad_->range(in.first(1));
    if (!padded) return std::nullopt;
    return conv_->range(behind_pad(in, (*padded)[0]));
  }

  std::optional<Gain> gain(const GainQuery& query) const override {
    if (query.wrt != 0) {
      const auto padded = pad_->range(query.in.first(1));
      if (!padded) return std::nullopt;
      return conv_->gain(
          {query.norms, behind_pad(query.in, (*padded)[0]), query.wrt, query.quick, query.steps});
    }
    if (!std::all_of(query.in.begin(), query.in.end(), holds_doubles)) return std::nullopt;
    Gain gain{0, "norms-12"};
    if (is_point(query.in[0])) return gain;
    std::vector<double> middle, radius;
    for (Index i = 0; i < query.in[1].lower.size(); ++i) {
      const Interval w = entry(query.in[1], i);
      middle.push_back(midpoint(w));
      radius.push_back(radius_up(w));
    }
    const bool exact = std::ranges::all_of(radius, [](double r) { return r == 0; });
    const double one = padded_conv_norm(map_, middle.data(), exact ? nullptr : radius.data(),
                                        query.norms, gain_effort(query))
                           .upper;
    gain.value = repeated_norm_up(one, map_.conv.batch, query.norms);
    return gain;
  }

 private:
  template <class T>
  static std::vector<T> behind_pad(std::span<const T> all, const T& first) {
    std::vector<T> result(all.begin(), all.end());
    result[0] = first;
    return result;
  }
  Buffer pad(const ConstView& image, Index count) const {
    Buffer padded(padded_, image.storage, image.stride == 0 ? 1 : count);
    pad_->eval({{&image, 1}, {&padded.view, 1}, image.stride == 0 ? 1 : count});
    if (image.stride == 0) padded.view.stride = 0;
    return padded;
  }

  std::shared_ptr<const Op> pad_, conv_;
  ValueType padded_;
  PaddedConv map_;
};

}  // namespace

std::shared_ptr<const Op> make_padded_conv(std::shared_ptr<const Op> pad,
                                           std::shared_ptr<const Op> conv, ValueType image,
                                           PaddedConv map) {
  return std::make_shared<PaddedConvOp>(std::move(pad), std::move(conv), std::move(image), map);
}

}  // namespace lipscope
