// Saves one session after another to the same file until somebody kills it. Before and after each save it writes the
// number of the save to standard output, as a byte of kind ('B' or 'D') and four of number.
#include <unistd.h>

#include <cstring>
#include <vector>

#include "cache_file.h"

namespace {

void tell(char kind, std::int32_t number) {
  char record[5] = {kind};
  std::memcpy(record + 1, &number, sizeof number);
  if (write(STDOUT_FILENO, record, sizeof record) != sizeof record) _exit(3);
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  const latte::Engine engine = latte::test::open_or_die(latte::test::family_options());
  std::vector<latte::Session> sessions;
  std::vector<std::string> notes;
  for (int which = 0; which < latte::test::kWorkingSessions; ++which) {
    sessions.push_back(latte::test::working_session(engine, which));
    notes.push_back(latte::test::working_note(which));
  }
  for (std::int32_t number = 0;; ++number) {
    const std::size_t which = static_cast<std::size_t>(number) % sessions.size();
    tell('B', number);
    if (!sessions[which].save(words[1], notes[which]).ok()) return 1;
    tell('D', number);
  }
}
