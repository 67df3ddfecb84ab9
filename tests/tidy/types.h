#ifndef ORRERY_TESTS_TIDY_TYPES_H_
#define ORRERY_TESTS_TIDY_TYPES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/tidy/scan.h"

// The types that a source defines, those inside of types too, and what is wrong with them as types.
// What is local to a function is left out.

namespace orrery::tidy {

/// A class, struct or enumeration with its body.
struct TypeSpan {
  std::string name;                    // "orrery::ir::OpInfo"
  std::string comment;                 // what stands right above it
  int32_t line = 0;                    // from 1
  int32_t fields = 0;                  // data that each object has; none of an enumeration
  int32_t constructor_parameters = 0;  // the most that one of its constructors has
};

/// The types of a source in the order of their ends, those of unnamed namespaces too.
std::vector<TypeSpan> FindTypes(absl::string_view text);

/// Types of one name that two headers define: a program that sees both has two meanings of one
/// name. "a.h and b.h define orrery::ir::Shape".
std::vector<std::string> TypesDefinedTwice(const std::vector<Source>& sources);

/// How much a type may have before its comment has to say why: with the words "so many fields" or
/// "so many parameters".
struct TypeLimits {
  int32_t fields = 12;
  int32_t constructor_parameters = 4;
};

/// Types of a source that are over the limits and do not say why:
/// "ir/a.h:12: orrery::ir::A has 13 fields".
std::vector<std::string> LargeTypes(const Source& source, const TypeLimits& limits);

}  // namespace orrery::tidy

#endif  // ORRERY_TESTS_TIDY_TYPES_H_
