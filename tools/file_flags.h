#ifndef ORRERY_TOOLS_FILE_FLAGS_H_
#define ORRERY_TOOLS_FILE_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

// Which flags of all programs name files: one table, for who checks them and who completes them.

namespace orrery::tools {

/// What a flag does with the file that it names.
enum class FileUse : uint8_t { kNone, kReads, kWrites };

/// That of the flag; kReads also where the file is one of several things that it takes.
FileUse FileUseOf(absl::string_view flag);

/// The file that `text` has a flag write: of --plot and --emit what stands behind a name; empty
/// where the text names none, and need not.
std::string WrittenFile(absl::string_view flag, const std::string& text);

/// Whether the text of a flag that writes may name no file.
bool MayWriteNothing(absl::string_view flag);

}  // namespace orrery::tools

#endif  // ORRERY_TOOLS_FILE_FLAGS_H_
