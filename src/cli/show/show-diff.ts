// `writ diff` for people: the bundles and files that differ, with their text differences. Pure: a difference in, lines out.
import type { PolicyDifference } from '../../agent/control/diff-policy.js';
import type { BundleDifference, FileDifference } from '../../core/status/policy-diff.js';
import { counted } from './show-text.js';

/** @returns a line SAME, or DIFFERENT with counts; the bundles that are not listed; lines for each bundle that differs */
export function showDiff({ from, to, bundles, notListed }: PolicyDifference): string[] {
  const what = `${from === 'nothing' ? 'no policy' : `generation ${from}`} -> ${to === 'server' ? 'what the server lists' : to}`;
  const unlisted = notListed.map((name) => `  ${name} is not listed by the server and stays unchanged`);
  if (bundles.length === 0) return [`SAME  ${what}`, ...unlisted];
  const total = (key: 'added' | 'removed' | 'changed'): number =>
    bundles.reduce((sum, one) => sum + one[key], 0);
  const counts = `${total('changed')} changed, ${total('added')} new, ${total('removed')} removed`;
  return [
    `DIFFERENT  ${what}: ${counted(bundles.length, 'bundle')}, ${counts}`,
    ...unlisted,
    ...bundles.flatMap(bundleLines),
  ];
}

function bundleLines(one: BundleDifference): string[] {
  const { bundle, fromSerial, toSerial, toRevision, files } = one;
  const serials = `${fromSerial ?? 'none'} -> ${toSerial ?? 'none'}`;
  const revision = toRevision === undefined || toRevision === '' ? '' : ` (${toRevision})`;
  const missing = one.added + one.removed + one.changed - files.length;
  return [
    `  ${bundle} ${serials}${revision}`,
    ...files.flatMap(fileLines),
    ...(missing === 0 ? [] : [`    (${counted(missing, 'more file')})`]),
  ];
}

function fileLines(file: FileDifference): string[] {
  const { path, kind, text } = file;
  const label = { added: 'new', removed: 'removed', changed: 'changed' }[kind];
  const lines = text?.lines.map((line) => `      ${line.replaceAll('\t', '  ')}`) ?? [];
  const more =
    text === undefined || text.leftOut === 0 ? [] : [`      (${counted(text.leftOut, 'more line')})`];
  return [`    ${label.padEnd(7)}  ${path}  ${detailOf(file)}`, ...lines, ...more];
}

function detailOf({ fromBytes, toBytes, only, noText }: FileDifference): string {
  const sizes = [fromBytes, toBytes].filter((one) => one !== undefined).map((one) => `${one} B`);
  const why = noText === undefined || noText === 'not wanted' ? '' : `, ${noText}`;
  return only === 'executable' ? 'executable or not' : `${sizes.join(' -> ')}${why}`;
}
