#ifndef ORRERY_IMPORTER_ROLE_PATTERNS_H_
#define ORRERY_IMPORTER_ROLE_PATTERNS_H_

#include <string>

namespace orrery::importer {

/// What a user says of the inputs and weights of an ONNX file, by name: regular expressions (syntax
/// of RE2) that match somewhere. Empty: nothing is said.
struct RolePatterns {
  /// Inputs that are parameters, whatever reads them.
  std::string parameters = {};
  /// Inputs that are data.
  std::string data = {};
  /// Parameters that are not trained.
  std::string freeze = {};
};

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_ROLE_PATTERNS_H_
