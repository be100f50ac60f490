"""python -m recipes"""

from recipes.shipping import main

if __name__ == "__main__":  # also imported by the processes that train
    main()
