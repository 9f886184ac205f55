// SPDX-License-Identifier: Apache-2.0
// What random graphs are made of. A recipe adds nodes and gives the last value; Rejected where it
// does not work out.
#pragma once

#include "tests/oracle/builder.h"

namespace oracle {

// Spellings that changed with the opset.
Value reduced(Builder& b, const std::string& op, const Value& x, const Dims& axes, bool keep);
Value clipped(Builder& b, const Value& x, const Value& low, const Value& high);
Value reshaped(Builder& b, const Value& x, const Dims& dims);
Value unsqueezed(Builder& b, const Value& x, const Dims& axes);

// Constants (constant_recipes.cpp).
double special_number(Builder& b);
// One number, computed by nodes: sums that round, roots and their squares, tiny and huge factors.
Value computed_constant(Builder& b, Type type, int depth);
// The same number behind a node that copies it.
Value passed_on(Builder& b, const Value& c);
// (c - the nearest double) times a power of two: of ordinary size, if c is not a double.
Value residue(Builder& b, const Value& c);

// Constants that hang on a decision about others (decision_recipes.cpp).
Value decided_constant(Builder& b, Type type);
Value integer_constant(Builder& b, Type type);  // integer_recipes.cpp

// Layers of a value that moves.
Value scaled_by_constant(Builder& b, const Value& x);              // layer_recipes.cpp
Value chosen_by_constant(Builder& b, const Value& x);              // decision_recipes.cpp
Value plain_layer(Builder& b, const Value& x);                     // layer_recipes.cpp
Value shape_layer(Builder& b, const Value& x);                     // shape_recipes.cpp
Value resized(Builder& b, const Value& x);                         // shape_recipes.cpp
Value cast_layer(Builder& b, const Value& x);                      // layer_recipes.cpp
Value tiny_clip(Builder& b, const Value& x);                       // layer_recipes.cpp
Value pattern(Builder& b, const Value& x);                         // pattern_recipes.cpp
Value two_inputs(Builder& b, const Value& x, const Value& other);  // layer_recipes.cpp
// Integers that change their places and width, perhaps, and become real numbers.
Value cast_at_once(Builder& b, const Value& whole, Type type);  // integer_recipes.cpp

}  // namespace oracle
