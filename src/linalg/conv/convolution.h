// SPDX-License-Identifier: Apache-2.0
// Convolutions as linear maps of the image and of the weights, on plain pointers.
//
//   y[n, m, o] = sum over c, k of w[m, c, k] * x[n, group(m) + c, o * stride - pad + k * dilation]
//
// with images [batch, channels, spatial...] and weights [out_channels, in_channels / groups,
// kernel...], row-major. float goes through oneDNN where it is there.
#pragma once

#include <array>

#include "lipscope/tensor.h"

namespace lipscope {

// Spatial arrays have three axes; a convolution of fewer has leading axes of size 1.
struct ConvShape {
  using Spatial = std::array<Index, 3>;
  Index batch = 1, groups = 1, in_channels = 1, out_channels = 1;
  Spatial input{1, 1, 1}, output{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilation{1, 1, 1},
      pad{0, 0, 0};  // pad: before the first entry

  [[nodiscard]] Index input_size() const { return input[0] * input[1] * input[2]; }
  [[nodiscard]] Index output_size() const { return output[0] * output[1] * output[2]; }
  [[nodiscard]] Index kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
  [[nodiscard]] Index x_size() const { return batch * in_channels * input_size(); }
  [[nodiscard]] Index y_size() const { return batch * out_channels * output_size(); }
  [[nodiscard]] Index w_size() const {
    return out_channels * (in_channels / groups) * kernel_size();
  }
  friend auto operator<=>(const ConvShape&, const ConvShape&) = default;
};

// y = W x + bias (bias: one per output channel, or null).
void conv_forward(const ConvShape& shape, const double* x, const double* w, const double* bias,
                  double* y);
void conv_forward(const ConvShape& shape, const float* x, const float* w, const float* bias,
                  float* y);
// x = W' y: the adjoint in the image, a transposed convolution.
void conv_adjoint_input(const ConvShape& shape, const double* y, const double* w, double* x);
void conv_adjoint_input(const ConvShape& shape, const float* y, const float* w, float* x);
// The adjoint in the weights, summed over the batch.
void conv_adjoint_weights(const ConvShape& shape, const double* x, const double* y, double* w);

// Plain twins of the float versions.
void conv_forward_plain(const ConvShape& shape, const float* x, const float* w, const float* bias,
                        float* y);
void conv_adjoint_input_plain(const ConvShape& shape, const float* y, const float* w, float* x);

// oneDNN. False when it was not built in or has no implementation for the shape; nothing is written
// then. Thread-safe.
bool conv_forward_dnnl(const ConvShape& shape, const float* x, const float* w, const float* bias,
                       float* y);
bool conv_adjoint_input_dnnl(const ConvShape& shape, const float* y, const float* w, float* x);

}  // namespace lipscope
