#ifndef ORRERY_TESTS_CLI_RUN_H_
#define ORRERY_TESTS_CLI_RUN_H_

#include <string>
#include <vector>

namespace orrery::cli {

/// How a program ended.
struct Finished {
  int code = 0;
  std::string out;
  std::string err;  // without the folder of the program
};

/// Runs `command`, a line of shell text that begins with the name of a program, in a folder that is
/// this test's own and empty at its start. $MODELS stands for examples/models. One minute is the
/// limit, and four under a sanitizer: a program that hangs ends with 124.
Finished Execute(const std::string& command);

/// The folder in which Execute runs, and a file in it.
const std::string& Folder();
std::string Contents(const std::string& name);
void Write(const std::string& name, const std::string& contents);
/// The files that are in the folder, sorted, without those that Write wrote.
std::vector<std::string> Left();

/// Empties the folder.
void Clear();

}  // namespace orrery::cli

#endif  // ORRERY_TESTS_CLI_RUN_H_
