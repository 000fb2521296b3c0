// Renders a directory as text: each entry with its mode, link target, size and content. Lists private files of Writ without
// their content, which may change between versions; its effects may not.
import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

const privateFiles = /(?:^|\/)(?:lock|\.lock|ledger[^/]*|journal[^/]*|history[^/]*)$/;
const isText = /\.(?:json|jsonl|yaml|yml|rpz|txt|pub|proposal|prom|conf)$/;
const maxTextBytes = 100_000;

/** @returns a line for each entry, with its content indented below, sorted by name */
export function renderTree(directory: string): string {
  const lines: string[] = [];
  visit(directory, '.', lines);
  return `${lines.join('\n')}\n`;
}

function visit(path: string, name: string, lines: string[]): void {
  const stat = lstatSync(path);
  const mode = (stat.mode & 0o7777).toString(8).padStart(4, '0');
  if (stat.isSymbolicLink()) lines.push(`link ${name} -> ${readlinkSync(path)}`);
  else if (stat.isDirectory()) {
    lines.push(`dir  ${mode} ${name}`);
    for (const entry of readdirSync(path).sort()) visit(join(path, entry), `${name}/${entry}`, lines);
  } else if (!stat.isFile()) lines.push(`node ${mode} ${name}`);
  else if (privateFiles.test(name)) lines.push(`file ${mode} ${name} (private)`);
  else lines.push(`file ${mode} ${name}`, ...contentOf(path, name));
}

function contentOf(path: string, name: string): string[] {
  const bytes = readFileSync(path);
  if ((name !== '.' && !isText.test(name)) || bytes.length > maxTextBytes) {
    return [`     ${bytes.length} bytes, sha256 ${createHash('sha256').update(bytes).digest('hex')}`];
  }
  return bytes
    .toString('utf8')
    .split('\n')
    .map((line) => `     | ${line}`);
}
