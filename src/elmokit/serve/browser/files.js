// Files that lie beside the page. A page that was opened from a disk may run scripts but not read files: so each file
// lies packed in a script, which calls `elmokitFile` with its name and content.

const packed = new Map();

globalThis.elmokitFile = (name, base64) => packed.set(name, base64);

/** A file's content: bytes. */
export async function readFile(name) {
  await runScript(`${name}.js`);
  const text = atob(packed.get(name));
  packed.delete(name);
  const bytes = new Uint8Array(text.length);
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index);
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(unpacked).arrayBuffer());
}

/** The content of a text file. */
export async function readText(name) {
  return new TextDecoder().decode(await readFile(name));
}

/** The content of a JSON file. */
export async function readJson(name) {
  return JSON.parse(await readText(name));
}

function runScript(address) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = address.split("/").map(encodeURIComponent).join("/");
    script.onload = resolve;
    script.onerror = () => reject(new Error(`${address} is missing: copy the whole folder`));
    document.head.append(script);
  });
}
