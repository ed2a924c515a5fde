// The server as the views see it: each method gives the JSON of its route. Nothing else on the page fetches.
//
// Another backend may have some of the methods only; `can` says which.

import { t } from "./texts.js";

const KEY = "elmokit key";
const TRIES = 6; // of a question that takes longer than a request may: the server goes on with it meanwhile

/** Why a question was not answered, in a sentence. */
export class BackendError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

async function ask(route, body) {
  let response = await send(route, body);
  for (let tries = 1; response.status === 503 && tries < TRIES; tries += 1) {
    const seconds = Number(response.headers.get("Retry-After")) || 1;
    await new Promise((resolve) => setTimeout(resolve, 1000 * seconds));
    response = await send(route, body);
  }
  const answer = await response.json().catch(() => ({ error: t("unreadable", { status: response.status }) }));
  if (!response.ok) throw new BackendError(answer.error, response.status);
  return answer;
}

async function send(route, body) {
  const key = sessionStorage.getItem(KEY);
  const headers = { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
  const request = body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers };
  try {
    return await fetch(route, request);
  } catch {
    throw new BackendError(t("unreachable"));
  }
}

export const backend = {
  can(method) {
    return method in this;
  },
  /** The key of a server that wants one; kept until the browser's tab is closed. */
  useKey(key) {
    sessionStorage.setItem(KEY, key);
  },
  info: () => ask("info"),
  corpora: () => ask("corpora"),
  surprisal: (text, model) => ask("surprisal", { text, model }),
  substitutes: (question) => ask("substitutes", question),
  neighbors: (question) => ask("neighbors", question),
  cosines: (question) => ask("cosines", question),
  concordance: (question) => ask("concordance", question),
  task: (name, inputs) => ask(`tasks/${encodeURIComponent(name)}`, { inputs }),
};
