// A host that does not poll while a test looks: its install id gives it a phase of the interval that no test knows, and in an
// interval of a month hardly any phase lies in the minute of a test. Of an agent that lives by the system's clock; one with a fake
// clock polls when its test says so.
export interface QuietPolls {
  readonly host: { readonly id: string };
  readonly poll: { readonly every: string };
}

/** @returns keys of agent.yaml. The poll of the start comes at once where nothing was pulled before, as ever */
export function quietPolls(name = 'test'): QuietPolls {
  return { host: { id: name }, poll: { every: '30d' } };
}
