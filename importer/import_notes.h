#ifndef ORRERY_IMPORTER_IMPORT_NOTES_H_
#define ORRERY_IMPORTER_IMPORT_NOTES_H_

#include <string>
#include <vector>

namespace orrery::importer {

/// What is worth to be known of a model file beside its function.
struct ImportNotes {
  /// A line each, without the name of the file: the file is in evaluation form, an input may be a
  /// weight, the batch was found behind time.
  std::vector<std::string> warnings = {};
  /// Why samples cannot be told apart although the file has a dynamic batch: "m: Gather 'y' cannot
  /// follow the batch: it takes samples out of the batch". Empty where they can.
  std::string batch_lost = {};
};

}  // namespace orrery::importer

#endif  // ORRERY_IMPORTER_IMPORT_NOTES_H_
