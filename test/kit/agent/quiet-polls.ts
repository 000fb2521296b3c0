// A host that does not poll during a test. The install id selects an unknown phase of the interval. In an interval of a month
// hardly any phase is in the minute of a test. For an agent with the system clock; a fake clock polls only when its test
// advances it.
export interface QuietPolls {
  readonly host: { readonly id: string };
  readonly poll: { readonly every: string };
}

/** @returns keys of agent.yaml. A host without a policy still polls at its start */
export function quietPolls(name = 'test'): QuietPolls {
  return { host: { id: name }, poll: { every: '30d' } };
}
