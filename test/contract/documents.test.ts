// Documents that can be held to the code are: the drawn machine, links, paths that are named, and the index of
// decisions.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { matchesFile } from '../kit/assert/golden.js';
import { projectRoot } from '../kit/sources/source-files.js';
import { drawMachine } from './mermaid.js';

const architecture = 'docs/ARCHITECTURE.md';

function read(path: string): string {
  return readFileSync(join(projectRoot, path), 'utf8');
}

function markdownIn(folder: string): string[] {
  return readdirSync(join(projectRoot, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name));
}

const examples = ['.', 'access', 'dns-edge', 'limits'].map((name) => join('docs/examples', name));
const packaging = ['packaging/ansible', 'packaging/kubernetes'];
const documents = ['.', 'docs', 'docs/adr', 'keys', 'bundles', ...examples, ...packaging].flatMap(markdownIn);

describe('docs/ARCHITECTURE.md', () => {
  it('draws the machine that the table is', () => {
    const drawn = `\`\`\`mermaid\n${drawMachine()}\n\`\`\``;
    matchesFile(
      architecture,
      read(architecture).replace(/```mermaid\n[\s\S]*?```/, () => drawn),
    );
  });

  it('can be read at once', () => {
    const withoutGlossary = read(architecture).replace(/^## Terms\n[\s\S]*?(?=^## )/m, '');
    assert.ok(withoutGlossary.trimEnd().split('\n').length <= 135);
  });
});

describe('documents', () => {
  it('link to files that exist', () => {
    const broken = documents.flatMap((path) =>
      [...read(path).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)]
        .map(([, target]) => join(dirname(path), target ?? ''))
        .filter((target) => !existsSync(join(projectRoot, target)))
        .map((target) => `${path} -> ${target}`),
    );
    assert.deepEqual(broken, []);
  });

  it('name sources that exist', () => {
    const gone = documents.flatMap((path) =>
      [...read(path).matchAll(/\b((?:src|test|scripts)\/[\w./-]+\.(?:ts|js|txt))\b/g)]
        .map(([, name]) => name ?? '')
        .filter((name) => !existsSync(join(projectRoot, name)))
        .map((name) => `${path}: ${name}`),
    );
    assert.deepEqual(gone, []);
  });
});

describe('docs/adr', () => {
  it('has every decision in its index, numbered without a gap', () => {
    const records = readdirSync(join(projectRoot, 'docs/adr')).filter((name) => /^\d{4}-/.test(name));
    const index = [...read('docs/adr/README.md').matchAll(/\]\((\d{4}-[^)]+)\)/g)].map(([, name]) => name);
    assert.deepEqual(index, [...records].sort());
    assert.deepEqual(
      index.map((name) => Number(name?.slice(0, 4))),
      index.map((_, position) => position + 1),
    );
  });
});
