// Evaluates queries with the library sift. Each line of the input is {"where", "record"}; each line of the output is
// {"match"} or {"error"}.
const sift = require(process.argv[2]).default;
const lines = require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean);
for (const line of lines) {
  const { where, record } = JSON.parse(line);
  let answer;
  try {
    answer = { match: sift(where)(record) };
  } catch (error) {
    answer = { error: String(error.message) };
  }
  console.log(JSON.stringify(answer));
}
