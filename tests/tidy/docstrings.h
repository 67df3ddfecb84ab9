#ifndef ORRERY_TESTS_TIDY_DOCSTRINGS_H_
#define ORRERY_TESTS_TIDY_DOCSTRINGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/tidy/scan.h"

// Whether a header is the manual: what it shows to others has a sentence of its own.

namespace orrery::tidy {

/// Something that a header declares in a namespace, or in the public part of a type.
struct Declaration {
  std::string scope;        // the type that it is a member of; empty: none
  std::string name;         // "Find"
  std::string statement;    // without comments and bodies: "int32_t Find(OpId op) const"
  int32_t line = 0;         // from 1
  bool documented = false;  // a line above it begins with ///
};

/// The functions, types, constants, aliases and fields of a header, in their order.
std::vector<Declaration> FindDeclarations(absl::string_view text);

/// Declarations of a header without a sentence of their own: "ir/a.h:12: Find has no sentence".
/// None is wanted of
///  - a further overload of a name of the same scope that has one;
///  - constructors, operators and what is defaulted or overrides: they are what they always are;
///  - `count() const`, a getter without parameters, and fields: the type's sentence explains them,
///    or a comment beside them;
///  - ToString, and what is made for hashing;
///  - forward declarations, friends, namespace aliases and macros.
std::vector<std::string> Undocumented(const Source& header);

}  // namespace orrery::tidy

#endif  // ORRERY_TESTS_TIDY_DOCSTRINGS_H_
