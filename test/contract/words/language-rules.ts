// The rules of language that a pattern can check, in comments, texts, test names, documents and names of the code. Data only;
// language-counts.test.ts applies them. A pattern may become stricter, and is never shortened.

/** Of which sentences break a rule: of comments, string literals and documents. */
export const sentenceRules = {
  /** The subject of a sentence is a noun: the worker, the host, the caller. */
  pronounSubject:
    /\b(?:whoever|whomever|nobody|somebody|everybody|anybody|whose)\b|(?:^|[.:;,(] )(?:who|whom|what (?:is|was|has|had|a|an|the))\b|\b(?:for|to|of|by) whom?\b/gi,
  /** A program logs, reports, returns, fails; a worker acknowledges, rejects, times out, exits. */
  metaphor:
    /\b(?:rooms?|houses?|doors?|faces?|stor(?:y|ies)|looks?|looked|looking|hears?|heard|hearing|tells?|told|telling|says?|said|saying|believes?|believed|owes?|owed|mends?|mended|ways?|lives?|life)\b/gi,
} as const;

/** Standard English, or a name of a format: the reason is beside each. */
export const sentenceExceptions: readonly { readonly phrase: RegExp; readonly reason: string }[] = [
  {
    phrase: /\bin (?:the same|this|that|any|another|either|its own|one) way\b|\bby the way\b|\bway to\b/gi,
    reason: 'a manner',
  },
];

/** Parts of names, as `look` in `lookAtBakes`. */
export const namePart =
  /^(?:rooms?|house|doors?|doorway|faces?|story|looks?|looked|hears?|heard|hearsay|tells?|told|says?|said|speaks?|speaker|words?|believed?|owed?|mends?|ways?|life|lives|vain|haste|aftermath|noes|news|nobody|somebody|who|whom|whose|wish|manner|means|lack)$/i;
