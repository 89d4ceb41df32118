// What the page carries: one table of contents as JSON, and blocks of bytes, gzipped and written in base64.

/** The table of contents. */
export function contents() {
  return JSON.parse(document.getElementById("contents").textContent);
}

/** The bytes of a block. */
export async function bytesOf(name) {
  const packed = fromBase64(document.getElementById(`block-${name}`).textContent.trim());
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}
