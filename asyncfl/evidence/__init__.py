"""`asyncfl evidence`: for an author's own strategy what a careful reviewer asks for."""
