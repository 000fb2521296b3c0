// The built-in check of how much a candidate changes: its list of files is compared with that of the active release, within the
// bounds of the configuration. Reads no file and runs no command.
import picomatch from '#picomatch';
import type { ChangeCheckConfig } from '../../core/config/config.js';
import {
  type ChangeExcess,
  exceedsPercent,
  fallsShortOfPercent,
  measureChange,
  percentAbove,
  percentBelow,
  removedFiles,
  type TreeChange,
} from '../../core/release/change-rules.js';
import type { Manifest } from '../../core/release/manifest.js';
import { sizeText } from '../../core/size-text.js';
import type { ChangeExemption } from './change-exemption-rules.js';
import type { CheckAnswer } from './parse-check.js';

/** What a candidate is compared with, or the reason for which it is not. */
export type ChangeBase =
  | { readonly kind: 'active'; readonly manifest: Manifest }
  | { readonly kind: 'exempt'; readonly reason: ChangeExemption };

export interface ChangeCheckOptions {
  readonly config: ChangeCheckConfig;
  readonly base: ChangeBase;
  /** Of the candidate. */
  readonly manifest: Manifest;
}

/** Never throws. Its facts have the first bound that is exceeded, its text all of them. */
export function runChangeCheck({ config, base, manifest }: ChangeCheckOptions): CheckAnswer {
  if (base.kind === 'exempt') {
    const text = `not compared with the active release: ${base.reason}`;
    return { verdict: { kind: 'ok', reason: `not compared: ${base.reason}` }, text };
  }
  const change = measureChange(base.manifest, manifest);
  const kept = filesToKeep(config, base.manifest, manifest);
  const found = [...excessOf(change, config), ...lostFiles(change, kept)];
  const [first] = found;
  if (first !== undefined) {
    const text = found.map(({ actual, expected }) => `${actual}; bound: ${expected}`).join('\n');
    const { expected, actual } = first;
    return { verdict: { kind: 'refused', reason: 'too large a change' }, text, facts: { expected, actual } };
  }
  // A glob with a typing error protects nothing, and is found before the day on which it is needed.
  if (kept.unmatched.length > 0)
    return {
      verdict: { kind: 'warned', reason: 'nothing to keep' },
      text: `no file matches ${kept.unmatched.join(' ')}`,
    };
  const { before, after } = change;
  const text = `${before.files} -> ${after.files} files, ${sizeText(before.bytes)} -> ${sizeText(after.bytes)}`;
  return { verdict: { kind: 'ok', reason: 'within bounds' }, text };
}

function excessOf(
  change: TreeChange,
  { maxRemovedPercent, bytesPercent }: ChangeCheckConfig,
): ChangeExcess[] {
  return [
    ...(maxRemovedPercent === undefined ? [] : removedFiles(change, maxRemovedPercent)),
    ...(bytesPercent === undefined ? [] : bytesOutside(change, bytesPercent)),
  ];
}

/** Of nothing there is no percentage: a release without a byte may be followed by any. */
function bytesOutside(
  { before, after }: TreeChange,
  { min, max }: NonNullable<ChangeCheckConfig['bytesPercent']>,
): ChangeExcess[] {
  if (before.bytes === 0) return [];
  const expected = `${min}% to ${max}% of ${sizeText(before.bytes)}`;
  const has = (percent: string): string => `${sizeText(after.bytes)} (${percent})`;
  if (fallsShortOfPercent(after.bytes, before.bytes, min))
    return [{ rule: 'bytes-removed', expected, actual: has(percentBelow(after.bytes, before.bytes)) }];
  if (exceedsPercent(after.bytes, before.bytes, max))
    return [{ rule: 'bytes-added', expected, actual: has(percentAbove(after.bytes, before.bytes)) }];
  return [];
}

interface FilesToKeep {
  readonly paths: ReadonlySet<string>;
  /** Globs that match no file of either release. */
  readonly unmatched: readonly string[];
}

function filesToKeep({ files: globs = [] }: ChangeCheckConfig, active: Manifest, now: Manifest): FilesToKeep {
  const paths = new Set<string>();
  const unmatched: string[] = [];
  for (const glob of globs) {
    const matches = picomatch(glob, { dot: true });
    const found = active.files.filter(({ path }) => matches(path));
    for (const { path } of found) paths.add(path);
    if (found.length === 0 && !now.files.some(({ path }) => matches(path))) unmatched.push(glob);
  }
  return { paths, unmatched };
}

function lostFiles({ difference, emptied }: TreeChange, { paths }: FilesToKeep): ChangeExcess[] {
  const removed = difference.removed.filter((path) => paths.has(path));
  const empty = emptied.filter(({ path }) => paths.has(path));
  return [
    ...removed.map((path): ChangeExcess => {
      return { rule: 'file-removed', expected: `${path} kept`, actual: `${path} removed` };
    }),
    ...empty.map(({ path, bytesBefore }): ChangeExcess => {
      const actual = `${path} emptied, it had ${sizeText(bytesBefore)}`;
      return { rule: 'file-emptied', expected: `content in ${path}`, actual };
    }),
  ].slice(0, maxFilesSaid);
}

/** Of a hundred thousand files that are gone these say enough. */
const maxFilesSaid = 20;
