#include "tools/terminal/text_chart.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace orrery::tools {
namespace text_chart_cc {
namespace {

std::string Repeat(absl::string_view text, size_t times) {
  std::string repeated;
  for (size_t i = 0; i < times; ++i) absl::StrAppend(&repeated, text);
  return repeated;
}

std::string PadLeft(absl::string_view text, size_t columns) {
  const size_t width = TextWidth(text);
  return absl::StrCat(std::string(columns > width ? columns - width : 0, ' '), text);
}

std::string PadRight(absl::string_view text, size_t columns) {
  const size_t width = TextWidth(text);
  return absl::StrCat(text, std::string(columns > width ? columns - width : 0, ' '));
}

// From the least to the greatest number of an axis.
class Scale {
 public:
  Scale(const std::vector<ScatterPoint>& points, double ScatterPoint::*number) {
    constexpr double kThirtyfold = 30;
    const auto [least, most] = std::ranges::minmax(points, {}, number);
    least_ = least.*number;
    most_ = most.*number;
    logarithmic_ = most_ > kThirtyfold * least_;
  }

  // 0 to 1.
  double Place(double number) const {
    if (most_ <= least_) return 0.5;
    if (logarithmic_) return std::log(number / least_) / std::log(most_ / least_);
    return (number - least_) / (most_ - least_);
  }
  double NumberAt(double place) const {
    if (logarithmic_) return least_ * std::pow(most_ / least_, place);
    return least_ + place * (most_ - least_);
  }
  std::string NameOf(const ScatterAxis& axis) const {
    return absl::StrCat(axis.name, logarithmic_ ? " (log)" : "");
  }

 private:
  double least_ = 0, most_ = 0;
  bool logarithmic_ = false;
};

// Cells of 2 x 4 dots, as braille has them, and marks over them.
class Canvas {
 public:
  Canvas(size_t columns, size_t rows)
      : columns_(columns), rows_(rows), dots_(columns * rows), marks_(columns * rows) {}

  // Places from the left and from below, 0 to 1.
  void Add(double x, double y, bool marked) {
    const size_t dot_x = Nearest(x, 2 * columns_), dot_y = Nearest(1 - y, 4 * rows_);
    const size_t cell = dot_y / 4 * columns_ + dot_x / 2;
    // The bits of U+2800 by place: down the left column, then down the right one, the last row
    // behind both.
    constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    dots_[cell] = static_cast<uint8_t>(dots_[cell] | kBits[dot_y % 4][dot_x % 2]);
    if (marked) marks_[cell] = 1;
  }

  // Without blanks at its end.
  std::string Row(size_t row, const Terminal& terminal) const {
    std::string text;
    size_t end = (row + 1) * columns_;
    while (end > row * columns_ && dots_[end - 1] == 0) --end;
    for (size_t i = row * columns_; i < end; ++i) {
      if (marks_[i] != 0) {
        text += Paint(terminal.unicode ? "◆" : "*", Colour::kGreen, terminal);
      } else if (dots_[i] == 0) {
        text += ' ';
      } else {
        text += terminal.unicode ? Braille(dots_[i]) : std::string(".");
      }
    }
    return text;
  }

 private:
  static size_t Nearest(double place, size_t dots) {
    const double at = std::floor(place * static_cast<double>(dots));
    return static_cast<size_t>(std::clamp(at, 0.0, static_cast<double>(dots - 1)));
  }
  // U+2800 and these bits as UTF-8.
  static std::string Braille(uint8_t bits) {
    return {'\xe2', static_cast<char>(0xA0 + (bits >> 6)), static_cast<char>(0x80 + (bits & 0x3F))};
  }

  size_t columns_, rows_;
  std::vector<uint8_t> dots_, marks_;
};

bool CanBeDrawn(const std::vector<ScatterPoint>& points) {
  const auto positive = [](const ScatterPoint& p) {
    return p.x > 0 && p.y > 0 && std::isfinite(p.x) && std::isfinite(p.y);
  };
  return points.size() >= 2 && std::ranges::all_of(points, positive);
}

// Numbers below the chart: at its left, in its middle and at its right.
std::string NumbersBelow(const ScatterChart& chart, const Scale& scale, size_t columns) {
  const std::string left = chart.x.print(scale.NumberAt(0)),
                    right = chart.x.print(scale.NumberAt(1)),
                    middle = chart.x.print(scale.NumberAt(0.5));
  const size_t around = TextWidth(left) + TextWidth(middle) + TextWidth(right);
  if (around + 4 > columns) return absl::StrCat(PadRight(left, columns - TextWidth(right)), right);
  const size_t before = (columns - TextWidth(middle)) / 2;
  return absl::StrCat(
      PadRight(absl::StrCat(PadRight(left, before), middle), columns - TextWidth(right)), right);
}

absl::string_view Glyph(size_t part, const Terminal& terminal) {
  constexpr absl::string_view kBlocks[] = {"█", "▓", "▒", "░"}, kLetters[] = {"#", "=", "-", "."};
  return terminal.unicode ? kBlocks[part % 4] : kLetters[part % 4];
}

Colour ColourOf(size_t part) {
  constexpr Colour kColours[] = {Colour::kGreen, Colour::kYellow, Colour::kBlue, Colour::kMagenta};
  return kColours[part % 4];
}

// Ends of parts are rounded, so that the whole is as long as its number says.
std::string DrawBar(const Bar& bar, double cells_a_unit, const Terminal& terminal) {
  std::string text;
  double end = 0;
  size_t drawn = 0;
  for (size_t p = 0; p < bar.parts.size(); ++p) {
    end += bar.parts[p] * cells_a_unit;
    const auto cells = static_cast<size_t>(std::lround(end));
    const Colour colour = bar.parts.size() == 1 ? bar.colour : ColourOf(p);
    if (cells > drawn) {
      text += Paint(Repeat(Glyph(p, terminal), cells - drawn), colour, terminal);
      drawn = cells;
    }
  }
  return text;
}

double Length(const Bar& bar) { return std::accumulate(bar.parts.begin(), bar.parts.end(), 0.0); }

std::string KeysLine(const BarChart& chart, const Terminal& terminal) {
  std::string line;
  for (size_t k = 0; k < chart.keys.size(); ++k) {
    absl::StrAppend(&line, "  ", Paint(Glyph(k, terminal), ColourOf(k), terminal), " ",
                    chart.keys[k]);
  }
  return line.empty() ? "" : absl::StrCat(line, "\n");
}

}  // namespace
}  // namespace text_chart_cc

std::string DrawScatter(const ScatterChart& chart, const Terminal& terminal, size_t rows) {
  namespace own = text_chart_cc;
  if (!own::CanBeDrawn(chart.points)) return "";
  const own::Scale x(chart.points, &ScatterPoint::x), y(chart.points, &ScatterPoint::y);
  const std::string labels[] = {chart.y.print(y.NumberAt(1)), chart.y.print(y.NumberAt(0.5)),
                                chart.y.print(y.NumberAt(0))};
  size_t margin = 0;
  for (const std::string& label : labels) margin = std::max(margin, TextWidth(label));
  constexpr size_t kLeast = 10, kMost = 100;
  const size_t taken = margin + 3;  // a blank, the axis, and no character in the last column
  const size_t columns =
      std::clamp(terminal.columns > taken ? terminal.columns - taken : 0, kLeast, kMost);
  own::Canvas canvas(columns, rows);
  for (const ScatterPoint& p : chart.points) canvas.Add(x.Place(p.x), y.Place(p.y), p.marked);
  std::string text = absl::StrCat(chart.title, "\n", y.NameOf(chart.y), "; ",
                                  Paint(terminal.unicode ? "◆" : "*", Colour::kGreen, terminal),
                                  " ", chart.marks, "\n");
  for (size_t row = 0; row < rows; ++row) {
    const size_t label = row == 0 ? 0 : row == rows / 2 ? 1 : 2;
    const bool labelled = row == 0 || row == rows / 2 || row == rows - 1;
    absl::StrAppend(&text, own::PadLeft(labelled ? labels[label] : "", margin), " ",
                    terminal.unicode ? (labelled ? "┤" : "│") : (labelled ? "+" : "|"),
                    canvas.Row(row, terminal), "\n");
  }
  const std::string before(margin + 1, ' ');
  absl::StrAppend(&text, before, terminal.unicode ? "└" : "+",
                  own::Repeat(terminal.unicode ? "─" : "-", columns), "\n", before, " ",
                  own::NumbersBelow(chart, x, columns), "\n", before, " ",
                  own::PadLeft(x.NameOf(chart.x), columns), "\n");
  return text;
}

std::string DrawBars(const BarChart& chart, const Terminal& terminal) {
  namespace own = text_chart_cc;
  double longest = 0;
  size_t names = 0, texts = 0;
  for (const Bar& bar : chart.bars) {
    longest = std::max(longest, own::Length(bar));
    names = std::max(names, TextWidth(bar.name));
    texts = std::max(texts, TextWidth(bar.text));
  }
  if (!(longest > 0) || !std::isfinite(longest)) return "";
  names = std::min(names, terminal.columns / 3);
  constexpr size_t kLeast = 5, kMost = 100;
  const size_t taken = 2 + names + 1 + 1 + texts + 1;
  const size_t room =
      std::clamp(terminal.columns > taken ? terminal.columns - taken : 0, kLeast, kMost);
  std::string text = absl::StrCat(chart.title, chart.title.empty() ? "" : "\n");
  for (const Bar& bar : chart.bars) {
    absl::StrAppend(&text, "  ", own::PadRight(CutText(bar.name, names, terminal), names), " ",
                    own::DrawBar(bar, static_cast<double>(room) / longest, terminal),
                    bar.text.empty() ? "" : " ", bar.text, "\n");
  }
  return text + own::KeysLine(chart, terminal);
}

}  // namespace orrery::tools
