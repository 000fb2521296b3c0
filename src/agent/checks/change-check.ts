// The built-in change check: compares the manifest of a candidate with that of the active release, and refuses a change beyond
// the configured bounds. Reads no file and runs no command.
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

/** The manifest to compare the candidate with, or the reason to skip the comparison. */
export type ChangeBase =
  | { readonly kind: 'active'; readonly manifest: Manifest }
  | { readonly kind: 'exempt'; readonly reason: ChangeExemption };

export interface ChangeCheckOptions {
  readonly config: ChangeCheckConfig;
  readonly base: ChangeBase;
  /** Of the candidate. */
  readonly manifest: Manifest;
}

/** Never throws. The facts of the answer have the first exceeded bound, and its text has all of them. */
export function runChangeCheck({ config, base, manifest }: ChangeCheckOptions): CheckAnswer {
  if (base.kind === 'exempt') {
    const text = `not compared with the active release: ${base.reason}`;
    return { verdict: { kind: 'ok', reason: `not compared: ${base.reason}` }, text };
  }
  const change = measureChange(base.manifest, manifest);
  const kept = filesToKeep(config, base.manifest, manifest);
  const found = [...findPercentExcess(change, config), ...findLostFiles(change, kept)];
  const [first] = found;
  if (first !== undefined) {
    const text = found.map(({ actual, expected }) => `${actual}; bound: ${expected}`).join('\n');
    const { expected, actual } = first;
    return { verdict: { kind: 'refused', reason: 'too large a change' }, text, facts: { expected, actual } };
  }
  // Warn about a glob without a match, because a mistyped glob protects nothing.
  if (kept.unmatched.length > 0)
    return {
      verdict: { kind: 'warned', reason: 'nothing to keep' },
      text: `no file matches ${kept.unmatched.join(' ')}`,
    };
  const { before, after } = change;
  const text = `${before.files} -> ${after.files} files, ${sizeText(before.bytes)} -> ${sizeText(after.bytes)}`;
  return { verdict: { kind: 'ok', reason: 'within bounds' }, text };
}

function findPercentExcess(
  change: TreeChange,
  { maxRemovedPercent, bytesPercent }: ChangeCheckConfig,
): ChangeExcess[] {
  return [
    ...(maxRemovedPercent === undefined ? [] : removedFiles(change, maxRemovedPercent)),
    ...(bytesPercent === undefined ? [] : findBytesExcess(change, bytesPercent)),
  ];
}

/** @returns empty if the active release has no bytes, because there is no percentage of zero */
function findBytesExcess(
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

function findLostFiles({ difference, emptied }: TreeChange, { paths }: FilesToKeep): ChangeExcess[] {
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
  ].slice(0, maxReportedFiles);
}

/** Limit for the reported files, because a change may remove very many. */
const maxReportedFiles = 20;
