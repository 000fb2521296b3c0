// The words that prose must not use, what to write instead, and the phrases in which a word is right. The terms
// themselves are in the table of terms in docs/ARCHITECTURE.md. Data only; words.test.ts applies it.

export interface Word {
  /** What must not be in prose. Always global, and case is ignored where nothing depends on it. */
  readonly pattern: RegExp;
  /** What a writer uses instead. */
  readonly say: string;
  /** Phrases in which the word is right, each with a reason. */
  readonly except?: readonly Exception[];
}

export interface Exception {
  readonly phrase: RegExp;
  readonly reason: string;
}

export const wordList: readonly Word[] = [
  { pattern: /\bmend(?:s|ed|ing)?\b/gi, say: 'repair (a damaged generation), fix (a file or a setting)' },
  { pattern: /\banew\b/gi, say: 'again; re-sign, recreate, reread' },
  {
    pattern: /\b(?:tell|tells|telling|told)\b/gi,
    say: 'notify (a worker); report, say, show, instruct',
  },
  {
    pattern: /\bdue\b/gi,
    say: 'pending (a worker); needed, expected, scheduled',
    except: [{ phrase: /\bdue to\b/gi, reason: 'standard English for a cause' }],
  },
  {
    pattern: /\b(?:hold|holds|holding)\b/gi,
    say: 'hold only blocks a release; else verify against, keep, contain, keep open, be valid, apply',
    except: [
      {
        phrase: /\bholds? (?:back )?(?:(?:a|an|the|that|this|every|each|one) (?:\w+ )?)?releases?\b/gi,
        reason: 'a release is held: the one meaning of the word',
      },
      {
        phrase: /\b(?:hold|holds|holding) (?:the|a|its|that) (?:\w+ )?locks?\b/gi,
        reason: 'the usual verb for a lock',
      },
      {
        phrase: /\b(?:a|the|its|that|this|no|each|every|of|and|or) holds?\b/gi,
        reason: 'the noun of the same act',
      },
      {
        phrase: /\bCould not get hold of varnishd\b/g,
        reason: 'a message of varnishadm, which docs/truth.md quotes',
      },
    ],
  },
  { pattern: /\bheld (?:to|in|at|against|open)\b/gi, say: 'verified against, kept in, kept open' },
  { pattern: /\bnobody's\b/gi, say: 'name the subject: no person, no process, no rule' },
  { pattern: /\b(?:a|the) no\b(?![-\w]| \w)/gi, say: 'a refusal' },
  { pattern: /\b(?:say|says|said|saying) no\b/gi, say: 'refuse, fail' },
  { pattern: /\b(?:say|says|said|saying) so\b/gi, say: 'report it, show it, name the fact' },
  {
    pattern: /\bbehind (?:a|an|the|each|every|its|that|it|them)\b/gi,
    say: 'after (in time)',
    except: [
      {
        phrase:
          /\bbehind (?:a|an|the|each|every|its) (?:reverse |corporate |own )?(?:proxy|proxies|load balancer|firewall|NAT|server|link|device|socket|flag|nginx|TLS)\b/gi,
        reason: 'a place, which is what the word means',
      },
    ],
  },
  { pattern: /\b(?:kin|siblings)\b/gi, say: 'the other members, its group' },
  { pattern: /\bends in\b/gi, say: 'the outcome is, ends with, expires in' },
  { pattern: /\bby way of\b/gi, say: 'through, with' },
  { pattern: /\b(?:of|from) before\b/gi, say: 'previous, earlier' },
  {
    pattern: /\b(?:came|comes|come) of (?:it|them|that|this|its?|either|each)\b/gi,
    say: 'the outcome, the result',
  },
  { pattern: /\bbut for\b/gi, say: 'except for' },
  { pattern: /\b(?:has|have|had) not (?:the|a|an|yet the|it|them)\b/gi, say: 'does not have, lacks' },
  {
    pattern:
      /\b(?:is|are|was|were) no\b(?! longer\b| more\b| less\b| later\b| older\b| newer\b| better\b| worse\b)/gi,
    say: 'is not a, are not',
    except: [{ phrase: /\bthere (?:is|are|was|were) no\b/gi, reason: 'standard English' }],
  },
  { pattern: /\bno (?:word|news) (?:on|of|yet)\b/gi, say: 'says nothing about, is not reported yet' },
  { pattern: /\b(?:lie|lies|lay|lying) (?:in|at|on|beside|there|below|under|around)\b/gi, say: 'is, are' },
  { pattern: /\b(?:is|are|was|were|be) whole\b/gi, say: 'complete, intact' },
];
