// `writ sign`: adds one signature to the proposal of a root. Prints the change, computed from the signed bytes and the
// signer's own root, requests the code that the signers compare by voice, and lists the missing signatures.
import { WritError } from '../../../core/errors.js';
import { createDurableFs } from '../../../platform/disk/durable-fs.js';
import {
  mergeProposals,
  type Proposal,
  proposalCode,
  readProposal,
  trustBase,
} from '../../../publisher/root/proposal-file.js';
import {
  addSignatures,
  isComplete,
  type TrustedProposal,
  validSignatures,
  withSignatures,
} from '../../../publisher/root/proposal-signatures.js';
import {
  findAnchor,
  openSigners,
  type ProvidedKeys,
  replaceProposal,
} from '../../../publisher/root/propose-root.js';
import { nameIn } from '../../../publisher/root/root-difference.js';
import { judgeRoot, requireAllowedChange } from '../../../publisher/root/root-rules.js';
import type { Answer, CommandContext, CommandDefinition } from '../../console/command.js';
import { repeatedText } from '../../console/flag-values.js';
import { type FlagValues, optional, toggle } from '../../console/flags.js';
import { confirmCode } from '../../console/questions.js';
import type { ChangeFlags } from '../../repository/change-flags.js';
import { requireOwnKeyFile } from '../../repository/own-places.js';
import { passphraseFlags, passphrasesFor } from '../../repository/passphrase.js';
import { clockFlag } from '../../repository/repository-flags.js';
import { signRoleAgain } from '../../repository/sign-role.js';
import { externalCommands, signerFlags } from '../../repository/signer-flags.js';
import {
  describeProposal,
  missingText,
  proposalDetails,
  proposalLines,
  tallyText,
} from '../../show/show-proposal.js';
import { shellQuote } from '../../show/show-repository.js';

const flags = {
  key: optional('--key <file>', 'your key; may be repeated', repeatedText),
  keys: optional('--keys <dir>', 'directory with your keys and your copy of the root'),
  root: optional('--root <file>', 'the root that you trust; default: root.json beside your key'),
  repository: optional('--repository <dir>', 'repository to read the root from when you have no copy'),
  merge: optional(
    '--merge <file>',
    'another copy of the same proposal, for its signatures; may be repeated',
    repeatedText,
  ),
  confirm: optional('--confirm <code>', 'the code, as compared by voice'),
  role: optional('--role <name>', 'instead of FILE: re-sign targets, or the role of a team'),
  out: optional('-o, --out <file>', 'where to write the signed proposal; default: FILE itself'),
  dryRun: toggle('--dry-run', 'show what would be signed; ask nothing, and write nothing'),
  clockIsRight: clockFlag,
  ...passphraseFlags,
  ...signerFlags,
};
type SignFlags = FlagValues<typeof flags>;

export const command: CommandDefinition<SignFlags> = {
  examples: [
    'writ sign root-2.proposal --key keys/ben.key',
    'writ sign root-2.proposal --signer "openssl dgst -sha256 -sign ben.pem" --root root.json --confirm CODE',
    'writ sign root-2.proposal --keys keys --merge from-carol.proposal',
    'writ sign --role targets --repository repo --keys keys',
    'writ sign root-2.proposal --key keys/ben.key --dry-run',
  ],
  exitCodes: [
    '0  signed, or already signed',
    '1  the file or its code differs from what you compared, or is based on another root; the key cannot be opened',
    '2  usage, or the change would be a mistake',
  ],
  args: [['[file]', 'the proposal file']],
  flags,
  acts: () => true,
  run: async ([file], flags, context) => {
    if (flags.role !== undefined) return signRoleAgain(flags.role, roleFlags(file, flags), context);
    if (file === undefined)
      throw new WritError('USAGE', 'nothing to sign was given', {
        hint: 'writ sign FILE --key KEY, or writ sign --role ROLE --repository DIR --keys DIR',
      });
    const hand = handOf(flags, context);
    const { at } = context;
    const read = (path: string): Proposal => readProposal(at(path));
    const received = mergeProposals([read(file), ...(flags.merge ?? []).map(read)]);
    const anchor = findAnchor(hand, { root: at(flags.root), repository: at(flags.repository) });
    const trusted = { proposal: received, base: trustBase(received, anchor) };
    const next = received.root.signed;
    requireAllowedChange(judgeRoot(trusted.base.signed, next), { danger: 'accepted' });
    if (flags.dryRun) return preview(trusted, file);
    show(trusted, context);
    const signed = await signIfWanted(trusted, hand, flags, context);
    const out = flags.out ?? file;
    replaceProposal(at(out), signed.proposal, createDurableFs());
    return answer({ base: trusted.base, ...signed }, out);
  },
};

const lockWaitMs = 10_000;

/** @throws WritError USAGE unless a role is given with its repository and keys, and without a proposal */
function roleFlags(file: string | undefined, flags: SignFlags): ChangeFlags {
  const { repository, keys } = flags;
  if (file === undefined && repository !== undefined && keys !== undefined) {
    return { ...flags, repository, keys, lockWait: lockWaitMs };
  }
  throw new WritError('USAGE', '--role takes --repository and --keys, and no FILE', {
    hint: 'writ sign --role ROLE --repository DIR --keys DIR',
  });
}

function handOf(flags: SignFlags, context: CommandContext): ProvidedKeys {
  const keyFiles = (flags.key ?? []).map(context.at);
  keyFiles.forEach(requireOwnKeyFile);
  return {
    keyFiles,
    keysDirectory: context.at(flags.keys),
    external: externalCommands(flags, context, () => true),
    passphrases: passphrasesFor(flags, context),
  };
}

/** The preview for a signer. It omits the code, because signers compare the code by voice and never copy it. */
function preview(trusted: TrustedProposal, file: string): Answer {
  const { difference, dangers, tallies } = describeProposal(trusted);
  return {
    type: 'sign.preview',
    outcome: 'would-sign',
    details: {
      proposal: file,
      changed: false,
      ...proposalDetails(difference, tallies),
      dangers,
      complete: isComplete(tallies),
    },
    lines: [
      `WOULD SIGN ${file}, which changes who controls every host:`,
      ...proposalLines(trusted),
      ...dangers.map((danger) => `  DANGER ${danger}`),
      'Nothing was written',
    ],
  };
}

/** Prints the change to stderr before the question, so that each signer sees it before the signature. */
function show(trusted: TrustedProposal, { reporter }: CommandContext): void {
  reporter.warn('You are about to change who controls every host:');
  for (const line of proposalLines(trusted)) reporter.note(line);
  for (const danger of describeProposal(trusted).dangers) reporter.warn(danger);
}

/** @returns the proposal after this command, and the ids of the available keys that signed it now or before */
async function signIfWanted(
  trusted: TrustedProposal,
  hand: ProvidedKeys,
  flags: SignFlags,
  context: CommandContext,
) {
  const hasHand = hand.keyFiles.length + hand.external.length > 0 || hand.keysDirectory !== undefined;
  const mergesOnly = !hasHand && flags.merge !== undefined;
  if (mergesOnly) {
    const proposal = withSignatures(trusted.proposal, validSignatures(trusted));
    return { proposal, added: [], already: [] };
  }
  if (!hasHand)
    throw new WritError('USAGE', 'no key to sign with', { hint: 'Give --key, --keys or --signer.' });
  await confirmCode(proposalCode(trusted.proposal), flags, context);
  const { signers, already } = await openSigners(trusted, hand);
  const { proposal, added } = await addSignatures(trusted, signers);
  return { proposal, added: added.map(({ keyid }) => keyid), already };
}

type SignedProposal = Awaited<ReturnType<typeof signIfWanted>> & TrustedProposal;

function answer(signed: SignedProposal, out: string): Answer {
  const { base, proposal, added, already } = signed;
  const { difference, tallies } = describeProposal(signed);
  const nameOf = (id: string): string => nameIn(base.signed, proposal.root.signed, id);
  const missing = missingText(tallies);
  const complete = isComplete(tallies);
  const file = shellQuote(out);
  const by = added.length > 0 ? `SIGNED ${out} by ${added.map(nameOf).join(', ')}` : undefined;
  const before =
    already.length > 0
      ? `ALREADY SIGNED: ${out} has the signatures of ${already.map(nameOf).join(', ')}`
      : undefined;
  return {
    outcome: 'signed',
    details: {
      proposal: out,
      changed: added.length > 0,
      signedBy: added.map((keyId) => ({ keyId, name: nameOf(keyId) })),
      ...proposalDetails(difference, tallies),
      complete,
    },
    lines: [
      `${by ?? before ?? `SIGNED ${out}: the copies are put together`}. ${capital(tallyText(tallies))}.`,
      ...(complete ? ['It has all signatures that it needs.'] : [`Still needed: ${missing}.`]),
    ],
    next: complete
      ? `writ root commit ${file} --repository DIR --keys DIR   (on the machine with the repository)`
      : `writ sign ${file} --key KEY   (${missing}; mail it)`,
  };
}

function capital(text: string): string {
  return text.replace(/^./, (letter) => letter.toUpperCase());
}
