// SPDX-License-Identifier: Apache-2.0
#include "machine/batch_norm.h"

#include <algorithm>

namespace lipscope {
namespace {

// The worse of two ways to compute a number.
Computed either(const Computed& a, const Computed& b) {
  return {a.real, std::max(a.error, b.error)};
}

class BatchNormStep final : public MachineStep {
 public:
  BatchNormStep(const Machine& machine, std::size_t channels, std::size_t inner, double epsilon)
      : machine_(machine), channels_(channels), inner_(inner), epsilon_(epsilon) {}

  void run(std::span<const ComputedView> in, const ComputedView&,
           std::span<double> error) const override {
    std::vector<Channel> channels;
    for (std::size_t c = 0; c < channels_; ++c)
      channels.push_back(channel(in[1].at(c), in[2].at(c), in[3].at(c), in[4].at(c)));
    for (std::size_t i = 0; i < error.size(); ++i)
      error[i] = entry_error(in[0].at(i), channels[i / inner_ % channels_]);
  }

 private:
  struct Channel {
    Computed scale, bias, mean;
    Computed deviation, inverse;  // sqrt(variance + epsilon), 1 over it
    Computed factor, shift;       // scale / deviation, bias - mean * factor
  };

  // Factors may also be prepared in higher precision and rounded at the end.
  [[nodiscard]] Computed prepared(const Interval& real) const { return machine_.stored(real); }

  [[nodiscard]] Channel channel(const Computed& scale, const Computed& bias, const Computed& mean,
                                const Computed& variance) const {
    const Machine& m = machine_;
    Channel c{.scale = scale,
              .bias = bias,
              .mean = mean,
              .deviation = {},
              .inverse = {},
              .factor = {},
              .shift = {}};
    const Computed sum = m.add(variance, m.stored(epsilon_));
    c.deviation = m.sqrt(sum);
    const Computed one{point(1), 0};
    const Computed quotient = m.div(one, c.deviation);
    // Processors have an instruction for it, which is a function of the library here.
    c.inverse = quotient.error < kInf ? m.library(quotient.real, quotient.error) : quotient;
    c.factor = either(either(m.div(scale, c.deviation), m.mul(scale, c.inverse)),
                      prepared(scale.real / c.deviation.real));
    c.shift =
        either(m.sub(bias, m.mul(mean, c.factor)), prepared(bias.real - mean.real * c.factor.real));
    return c;
  }

  [[nodiscard]] double entry_error(const Computed& x, const Channel& c) const {
    const Machine& m = machine_;
    const Computed centred = m.sub(x, c.mean);
    const Computed ways[] = {
        m.add(m.mul(x, c.factor), c.shift), m.add(m.mul(centred, c.factor), c.bias),
        m.add(m.div(m.mul(centred, c.scale), c.deviation), c.bias),
        m.add(m.mul(m.mul(centred, c.scale), c.inverse), c.bias),
        m.add(m.mul(either(m.div(centred, c.deviation), m.mul(centred, c.inverse)), c.scale),
              c.bias)};
    double worst = 0;
    for (const Computed& way : ways) worst = std::max(worst, way.error);
    return worst;
  }

  Machine machine_;
  std::size_t channels_, inner_;
  double epsilon_;
};

}  // namespace

std::unique_ptr<const MachineStep> batch_norm_step(const Machine& machine, std::size_t channels,
                                                   std::size_t inner, double epsilon) {
  return std::make_unique<BatchNormStep>(machine, channels, inner, epsilon);
}

}  // namespace lipscope
