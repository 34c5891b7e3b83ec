// Evaluates expressions with the library jmespath. Each line of the input is {"expression", "data"}; each line of the
// output is {"result"} or {"error"}.
const jmespath = require(process.argv[2]);
const lines = require('fs').readFileSync(0, 'utf8').split('\n').filter(Boolean);
for (const line of lines) {
  const { expression, data } = JSON.parse(line);
  let answer;
  try {
    const result = jmespath.search(data, expression);
    answer = { result: result === undefined ? { undefined: true } : result };
  } catch (error) {
    answer = { error: String(error.message) };
  }
  console.log(JSON.stringify(answer));
}
