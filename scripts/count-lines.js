// Counts the lines of src that are neither blank nor comment, for each module, as a measure of its size.
// Changes nothing. `npm run lines`, or `npm run lines -- FOLDER` for another checkout's src.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const root = process.argv[2] ?? 'src';
const counts = new Map();
for (const name of readdirSync(root, { recursive: true }).filter((one) => /\.tsx?$/.test(one))) {
  const lines = countLines(readFileSync(join(root, name), 'utf8'));
  const module = dirname(name);
  counts.set(module, (counts.get(module) ?? 0) + lines);
}
for (const [module, lines] of [...counts].sort()) console.log(`${String(lines).padStart(6)}  ${module}`);
console.log(`${String([...counts.values()].reduce((a, b) => a + b, 0)).padStart(6)}  in all`);

/** Every comment of ours begins its line, or ends one that has code. */
function countLines(text) {
  return text.split('\n').filter((line) => !/^\s*($|\/\/|\/\*|\*)/.test(line)).length;
}
