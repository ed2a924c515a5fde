// What is shown stands in the address, after #, so that it can be sent to someone, and "back" goes back.

/** The names and values in the address. */
export function readState() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/** Change some of them; null takes one away. With `replace`, "back" skips what was before. */
export function setState(changes, { replace = false } = {}) {
  const hash = hashOf({ ...readState(), ...changes });
  if (hash === location.hash) return;
  if (replace) location.replace(hash);
  else location.hash = hash;
}

/** A state as the end of an address. */
export function hashOf(state) {
  const given = Object.entries(state).filter(([, value]) => value !== null && value !== undefined);
  return `#${new URLSearchParams(given)}`;
}

/** Call `show` with the state, now and whenever it changes. */
export function followState(show) {
  window.addEventListener("hashchange", () => show(readState()));
  show(readState());
}
