"""Commands that tell what there is to choose from, and what it will be: nothing is run or recorded."""
