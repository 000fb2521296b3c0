// The cost of one run of one subject. Members without a measurement are omitted.

export interface Sample {
  readonly wallMs: number;
  /** User and system time, of the processes that it started and waited for too. */
  readonly cpuMs?: number;
  /** The most memory that one of its processes ever had resident. */
  readonly peakBytes?: number;
  /** From the server, with the headers of answers where there is HTTP. */
  readonly receivedBytes?: number;
  readonly requests?: number;
  /** Of Writ: from the start of the cycle to the moved link. */
  readonly toSwapMs?: number;
}
