#include "tools/plots/gnuplot.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "support/file.h"
#include "support/status.h"

namespace orrery::tools {
namespace gnuplot_cc {
namespace {

absl::Status NoGnuplot() {
  return absl::FailedPreconditionError(
      "found no program gnuplot on PATH, which draws plots; wanted that of Debian's package "
      "gnuplot-nox: try apt-get install gnuplot-nox, or leave the plot out");
}

absl::StatusOr<std::string> FindGnuplot(const GnuplotOptions& options) {
  const char* path = std::getenv("PATH");
  const std::string folders = !options.folders.empty() ? options.folders
                              : path != nullptr        ? path
                                                       : "";
  for (const absl::string_view folder : absl::StrSplit(folders, ':', absl::SkipEmpty())) {
    std::string program = absl::StrCat(folder, "/gnuplot");
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return NoGnuplot();
}

// One line without what a terminal would obey.
std::string Plain(absl::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(c))) c = ' ';
  }
  return plain;
}

// In a table a quote is doubled, and so is a backslash, which gnuplot looks at there too.
std::string CellText(const PlotCell& cell) {
  if (const double* number = std::get_if<double>(&cell)) {
    return std::isfinite(*number) ? absl::StrFormat("%.17g", *number) : "NaN";
  }
  const std::string label = Plain(std::get<std::string>(cell));
  return absl::StrCat("\"", absl::StrReplaceAll(label, {{"\"", "\"\""}, {"\\", "\\\\"}}), "\"");
}

std::string ScriptOf(const Plot& plot, PlotFormat format) {
  std::string script =
      format == PlotFormat::kSvg
          ? absl::StrFormat(
                "set terminal svg size %d,%d noenhanced font 'sans-serif,13' background "
                "'#ffffff'\n",
                plot.width, plot.height)
          : absl::StrFormat(
                "set terminal pdfcairo size %.2fin,%.2fin noenhanced font 'sans-serif,9'\n",
                plot.width / 100.0, plot.height / 100.0);
  absl::StrAppend(&script, "set encoding utf8\nset datafile separator comma\n");
  for (const PlotTable& table : plot.tables) {
    absl::StrAppend(&script, "$", table.name, " << END_OF_TABLE\n");
    for (const std::vector<PlotCell>& row : table.rows) {
      for (size_t i = 0; i < row.size(); ++i) {
        absl::StrAppend(&script, i == 0 ? "" : ",", CellText(row[i]));
      }
      script += '\n';
    }
    script += "END_OF_TABLE\n";
  }
  return absl::StrCat(script, plot.commands, "\nunset output\n");
}

// A file without a name, which is gone when it is closed.
struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Nameless = std::unique_ptr<std::FILE, Close>;

std::string ReadAll(std::FILE* file) {
  std::rewind(file);
  std::string text;
  char buffer[1 << 14];
  for (size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, n);
  return text;
}

// How it ended, or DeadlineExceeded. It is looked after every few milliseconds: there is no
// waiting for a process up to a time.
absl::StatusOr<int> WaitFor(pid_t process, int timeout_s) {
  const auto start = std::chrono::steady_clock::now();
  int status = 0;
  while (waitpid(process, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() - start > std::chrono::seconds(timeout_s)) {
      kill(process, SIGKILL);
      waitpid(process, &status, 0);
      return absl::DeadlineExceededError(
          absl::StrCat("gnuplot took longer than ", timeout_s, " s; wanted a plot"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return status;
}

// It starts without what its user has set, so that a plot is the same for all.
absl::StatusOr<pid_t> Start(const std::string& program, std::FILE* const (&streams)[3]) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int i = 0; i < 3; ++i) posix_spawn_file_actions_adddup2(&actions, fileno(streams[i]), i);
  const char* home = std::getenv("HOME");
  std::string texts[] = {absl::StrCat("HOME=", home == nullptr ? "/" : home), "LC_ALL=C.UTF-8",
                         "PATH=/usr/bin:/bin", "TZ=UTC"};
  std::string arguments[] = {program, "-d", "-"};
  char* const environment[] = {texts[0].data(), texts[1].data(), texts[2].data(), texts[3].data(),
                               nullptr};
  char* const argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
  pid_t process = 0;
  const int error = posix_spawn(&process, program.c_str(), &actions, nullptr, argv, environment);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::InternalError(absl::StrCat(program, ": cannot be run: ", std::strerror(error)));
  }
  return process;
}

std::string FirstLine(absl::string_view text) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view plain = absl::StripAsciiWhitespace(line);
    if (!plain.empty() && !absl::StartsWith(plain, "^")) return Plain(plain);
  }
  return "it says nothing";
}

// A PDF has the time when it was made; this one was made when nothing else was.
void ForgetWhen(std::string& pdf) {
  constexpr absl::string_view kKey = "/CreationDate (D:";
  const size_t at = pdf.find(std::string(kKey));
  if (at == std::string::npos) return;
  for (size_t i = at + kKey.size(); i < pdf.size() && pdf[i] != ')'; ++i) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(pdf[i]))) pdf[i] = '1';
  }
}

}  // namespace
}  // namespace gnuplot_cc

std::string PlotText(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(gnuplot_cc::Plain(text), {{"'", "''"}}), "'");
}

absl::StatusOr<PlotFormat> PlotFormatOf(const std::string& path) {
  if (absl::EndsWith(path, ".svg")) return PlotFormat::kSvg;
  if (absl::EndsWith(path, ".pdf")) return PlotFormat::kPdf;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": wanted a name that ends in .svg or .pdf"));
}

absl::Status CheckPlot(const std::string& path, const GnuplotOptions& options) {
  ORRERY_RETURN_IF_ERROR(PlotFormatOf(path).status());
  return gnuplot_cc::FindGnuplot(options).status();
}

absl::StatusOr<std::string> DrawPlot(const Plot& plot, PlotFormat format,
                                     const GnuplotOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(const std::string program, gnuplot_cc::FindGnuplot(options));
  const gnuplot_cc::Nameless in(std::tmpfile()), out(std::tmpfile()), err(std::tmpfile());
  if (in == nullptr || out == nullptr || err == nullptr) {
    return absl::InternalError("cannot make a temporary file for gnuplot; try to free some space");
  }
  const std::string script = gnuplot_cc::ScriptOf(plot, format);
  if (std::fwrite(script.data(), 1, script.size(), in.get()) != script.size() ||
      std::fflush(in.get()) != 0) {
    return absl::InternalError("cannot write gnuplot's script; try to free some space");
  }
  std::rewind(in.get());
  ORRERY_ASSIGN_OR_RETURN(const pid_t process,
                          gnuplot_cc::Start(program, {in.get(), out.get(), err.get()}));
  ORRERY_ASSIGN_OR_RETURN(const int status, gnuplot_cc::WaitFor(process, options.timeout_s));
  std::string drawn = gnuplot_cc::ReadAll(out.get());
  if (status != 0 || drawn.empty()) {
    return absl::InternalError(absl::StrCat("gnuplot drew nothing: ",
                                            gnuplot_cc::FirstLine(gnuplot_cc::ReadAll(err.get()))));
  }
  if (format == PlotFormat::kPdf) gnuplot_cc::ForgetWhen(drawn);
  return drawn;
}

absl::Status WritePlot(const std::string& path, const Plot& plot, const GnuplotOptions& options) {
  ORRERY_ASSIGN_OR_RETURN(const PlotFormat format, PlotFormatOf(path));
  ORRERY_ASSIGN_OR_RETURN(const std::string drawn, DrawPlot(plot, format, options));
  return WriteFile(path, drawn);
}

}  // namespace orrery::tools
