// A backend that keeps its last answers, so that views may ask again whenever the address changes.

const KEPT = ["surprisal", "substitutes", "neighbors", "cosines", "concordance", "task"];
const MOST = 60;

/** The same backend; a question that was answered a short while ago is not asked again. */
export function keepAnswers(backend) {
  const answers = new Map();
  const kept = Object.create(backend);
  for (const method of KEPT.filter((name) => backend.can(name))) {
    kept[method] = (...question) => {
      const key = JSON.stringify([method, question]);
      const answer = answers.get(key) ?? backend[method](...question);
      answers.delete(key);
      answers.set(key, answer); // the newest is last
      answer.catch(() => answers.delete(key));
      if (answers.size > MOST) answers.delete(answers.keys().next().value);
      return answer;
    };
  }
  return kept;
}
