// The text of a proposed root: its changes, the keys of each role after it, its signatures and the missing ones. Pure
// text, from values that were computed from the signed bytes.

import { timeLeft } from '../../core/text/iso-time.js';
import { shortKeyId } from '../../publisher/keys/signer-names.js';
import {
  labelOf,
  listMissingSigners,
  type Tallies,
  type Tally,
  type TrustedProposal,
  tallySignatures,
} from '../../publisher/root/proposal-signatures.js';
import {
  compareRoots,
  type NamedKey,
  type RoleDifference,
  type RootDifference,
} from '../../publisher/root/root-difference.js';
import { judgeRoot } from '../../publisher/root/root-rules.js';
import { table } from './show-text.js';

/** @returns difference to the base root, dangers of the change, and tallies of the signatures by old and new keys */
export function describeProposal({ base, proposal }: TrustedProposal) {
  const next = proposal.root.signed;
  const { dangers } = judgeRoot(base.signed, next);
  const tallies = tallySignatures({ base, proposal });
  return { difference: compareRoots(base.signed, next), dangers, tallies };
}

/** @returns everything that a signer must see, without the dangers */
export function proposalLines(trusted: TrustedProposal): string[] {
  const { difference, tallies } = describeProposal(trusted);
  return [...differenceLines(difference), ...controlLines(difference), `  ${needText(tallies)}`];
}

/** @returns one line for each changed role */
export function differenceLines(difference: RootDifference): string[] {
  const { version, expires, roles, lives, renamed } = difference;
  const changed = roles.filter(
    ({ added, removed, threshold }) =>
      added.length + removed.length > 0 || threshold.before !== threshold.after,
  );
  const rest = lives.length + renamed.length;
  return [
    `  root v${version.before} -> v${version.after}, expires ${expires.slice(0, 10)}`,
    ...table(
      ['', '', ''],
      changed.map((role) => [role.role, keysText(role), thresholdText(role)]),
    ).slice(1),
    ...lives.map(
      ({ role, beforeMs, afterMs }) =>
        `  ${role} is valid for ${timeLeft(afterMs)} instead of ${timeLeft(beforeMs)}`,
    ),
    ...renamed.map(
      ({ keyId, before, after }) => `  key ${shortKeyId(keyId)} of ${before} is called ${after}`,
    ),
    ...(changed.length + rest === 0 ? ['  no key, threshold or life changes'] : []),
  ];
}

function keysText({ added, removed }: RoleDifference): string {
  const minus = removed.map((key) => `- ${keyText(key)}`);
  return [...minus, ...added.map((key) => `+ ${keyText(key)}`)].join('  ');
}

function keyText({ name, keyId }: NamedKey): string {
  return name === shortKeyId(keyId) ? name : `${name} (${shortKeyId(keyId)})`;
}

function thresholdText({ threshold, kept, removed, added }: RoleDifference): string {
  const before = `${threshold.before} of ${kept.length + removed.length}`;
  const after = `${threshold.after} of ${kept.length + added.length}`;
  return before === after ? `threshold ${after} stays` : `threshold ${before} -> ${after}`;
}

/** @returns the keys of each role after the commit of the root; new keys are marked */
function controlLines({ roles }: RootDifference): string[] {
  const rows = roles.map(({ role, kept, added, threshold }) => {
    const names = [...kept.map(keyText), ...added.map((key) => `${keyText(key)} NEW`)];
    return [role, `${threshold.after} of ${names.length}`, names.join(', ')];
  });
  return table(['after it', 'need', 'who'], rows);
}

/** @returns as `needs 2 of 3 old keys and 2 of 3 new keys; has 0 and 0` */
export function needText({ old, next }: Tallies): string {
  const needs = `needs ${old.threshold} of ${old.keys} old keys and ${next.threshold} of ${next.keys} new keys`;
  return `${needs}; has ${old.signed.length} and ${next.signed.length}`;
}

/** @returns as `old 1/2 (ben), new 1/2 (ben)` */
export function tallyText({ old, next }: Tallies): string {
  return `old ${oneTally(old)}, new ${oneTally(next)}`;
}

function oneTally({ signed, threshold }: Tally): string {
  const names = signed.map(({ name }) => name).join(', ');
  return `${signed.length}/${threshold}${names === '' ? '' : ` (${names})`}`;
}

/** @returns as `one of anna, carol`, joined by `, and ` for old and new keys; empty when no signature is missing */
export function missingText(tallies: Tallies): string {
  return listMissingSigners(tallies)
    .map(({ count, of }) => {
      const names = of.map((key) => labelOf(tallies, key)).join(', ');
      return count === of.length ? names : `${count === 1 ? 'one' : count} of ${names}`;
    })
    .join(', and ');
}

/** @returns the members for --json: version of the new root, difference, signatures, and missing signers */
export function proposalDetails(difference: RootDifference, tallies: Tallies): Record<string, unknown> {
  return {
    version: difference.version.after,
    difference,
    signatures: tallies,
    missing: listMissingSigners(tallies),
  };
}
